"""Kinds that enqueue other jobs, or write to the database in the transaction of their completion.

A run may be repeated after a crash. So every child has a key made of its parent's id: enqueued twice, it is still one job.
"""

from __future__ import annotations

from tenure import Call, Context, Priority, Retry
from tenure.simulate.app import app
from tenure.simulate.kinds_working import quick

TABLE = "tenure_practice"
_SOON = Retry(max_attempts=3, initial="100ms", jitter=False)
_CREATE = f"create table if not exists {TABLE} (job_id uuid not null, attempt integer not null, seed bigint not null)"
_WRITE = f"insert into {TABLE} (job_id, attempt, seed) values (%s, %s, %s)"  # noqa: S608 - our own constant


@app.job
async def chained(ctx: Context, seed: int, links: int = 3) -> int:
    """Enqueues the next link until none is left. Ends: completed, as does each link."""
    if links > 1:
        await chained.using(key=str(ctx.job_id)).enqueue(seed, links - 1)
    return links


@app.job
async def fan_out(ctx: Context, seed: int, children: int = 5) -> int:
    """Enqueues many quick children at once. Ends: completed, as do the children."""
    await app.enqueue_many(_quick_calls(ctx, seed, children))
    return children


@app.job
def fan_out_in_thread(ctx: Context, seed: int, children: int = 5) -> int:
    """The same from a plain function in a thread. Ends: completed, as do the children."""
    app.enqueue_many_sync(_quick_calls(ctx, seed, children))
    return children


@app.job(run_in="process")
def fan_out_in_process(ctx: Context, seed: int, children: int = 5) -> int:
    """The same from a separate process. Ends: completed, as do the children."""
    app.enqueue_many_sync(_quick_calls(ctx, seed, children))
    return children


@app.job
async def ladder(ctx: Context, seed: int) -> list[str]:
    """Enqueues one job for each named priority, the lowest first. Ends: completed, as do the rungs."""
    names = [priority.name.lower() for priority in sorted(Priority)]
    await app.enqueue_many([rung.using(priority=name, key=f"{ctx.job_id} {name}").call(seed, name) for name in names])
    return names


@app.job
async def rung(seed: int, priority: str = "normal") -> str:
    """Returns the priority that it was enqueued with. Ends: completed."""
    return f"{priority} {seed}"


@app.job(key="order")
async def keyed(seed: int, order: str) -> str:
    """Enqueued twice for the same order, it is one job. Ends: completed."""
    return f"{order} {seed}"


@app.job(retry=_SOON)
async def atomic_write(ctx: Context, seed: int) -> int:
    """Writes a row in the job's own transaction; the first attempt fails after writing. Ends: completed, with one row."""
    async with ctx.transaction() as tx:
        await tx.execute("select pg_advisory_xact_lock(hashtext(%s))", [TABLE])
        await tx.execute(_CREATE)
        await tx.execute(_WRITE, [ctx.job_id, ctx.attempt, seed])
        if ctx.attempt == 1:
            raise ConnectionError(f"seed {seed}: everything is rolled back")
    return seed


@app.job(retry=_SOON, atomic=True)
def atomic_in_thread(ctx: Context, seed: int) -> int:
    """The same as a plain function with atomic=True. Ends: completed, with one row."""
    with ctx.db() as tx:
        tx.execute("select pg_advisory_xact_lock(hashtext(%s))", [TABLE])
        tx.execute(_CREATE)
        tx.execute(_WRITE, [ctx.job_id, ctx.attempt, seed])
    if ctx.attempt == 1:
        raise ConnectionError(f"seed {seed}: everything is rolled back")
    return seed


@app.job(retry=_SOON)
async def atomic_child(ctx: Context, seed: int) -> int:
    """Enqueues a child in the job's own transaction; the first attempt fails after that. Ends: completed, with one child."""
    async with ctx.transaction() as tx:
        await quick.using(conn=tx).enqueue(seed)
        if ctx.attempt == 1:
            raise ConnectionError(f"seed {seed}: the child is rolled back")
    return seed


def _quick_calls(ctx: Context, seed: int, count: int) -> list[Call[int]]:
    return [quick.using(key=f"{ctx.job_id} {child}").call(seed + child) for child in range(count)]
