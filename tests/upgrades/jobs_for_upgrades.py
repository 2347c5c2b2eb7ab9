"""The app that workers and clients of both versions load: copied as `jobs.py` into the project folder, never imported by a test.

It uses what the earliest code has that the test runs; what came later is used where it is there.
"""

import asyncio
from collections.abc import Iterator

import tenure
from tenure import Call, Context, Limit, Retry, Tenure

app = Tenure()


@app.job
async def quick(n: int) -> int:
    await asyncio.sleep(0.01)
    return n


@app.job
def in_thread(n: int) -> int:
    return n


@app.job(retry=Retry(backoff="fixed", initial="50ms", jitter=False))
async def fails_once(ctx: Context, n: int) -> int:
    if not ctx.is_retry:
        raise RuntimeError("as planned")
    return n


@app.job(concurrency=Limit(2))
async def limited(n: int) -> int:
    await asyncio.sleep(0.01)
    return n


@app.job
async def writes_once(ctx: Context, n: int) -> int:
    async with ctx.transaction() as tx:
        await tx.execute("insert into effects (job_id) values (%s)", (ctx.job_id,))
    return n


@app.job
async def enqueues_another(n: int) -> int:
    await quick.enqueue(n)
    return n


# Of times that pass while no worker leads, all are caught up: none is missed, however slow the machine is.
@app.cron(every="1s", overlap="allow", catch_up="all", catch_up_limit=1000)
async def tick() -> None: ...


def calls(client: str, n: int) -> Iterator[Call]:
    """One of each kind."""
    yield quick.call(n)
    yield quick.using(delay="200ms").call(n)
    yield quick.using(key=f"{client}-{n}").call(n)
    yield quick.using(priority="high", key=f"window-{client}-{n}", key_for="1h").call(n)
    yield in_thread.call(n)
    yield fails_once.call(n)
    yield limited.call(n)
    yield writes_once.call(n)
    yield enqueues_another.call(n)
    if hasattr(tenure, "Continue"):
        yield starts_chain.call(n)
    if hasattr(app, "workflow"):
        yield flow.call(n)


if hasattr(tenure, "Continue"):

    @app.job
    async def starts_chain(n: int) -> "tenure.Continue[int]":
        return tenure.Continue(quick, n)


if hasattr(app, "workflow"):

    async def add_one(n: int) -> int:
        return n + 1

    @app.workflow
    async def flow(ctx: "tenure.WorkflowContext", n: int) -> int:
        first = await ctx.step("first", add_one, n)
        await ctx.sleep("nap", "300ms")
        return await ctx.step("second", add_one, first)
