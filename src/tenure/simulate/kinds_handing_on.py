"""Kinds that hand in other jobs, or write to the database as one with their completion.

A run may be repeated after a crash. So every child has a key made of its parent's id: handed in twice, it is still one job.
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
    """Hands in the next link until none is left. Ends: completed, link by link."""
    if links > 1:
        await chained.using(key=str(ctx.job_id)).enqueue(seed, links - 1)
    return links


@app.job
async def fan_out(ctx: Context, seed: int, children: int = 5) -> int:
    """Hands in many quick children at once. Ends: completed, and so do they."""
    await app.enqueue_many(_quick_ones(ctx, seed, children))
    return children


@app.job
def fan_out_in_thread(ctx: Context, seed: int, children: int = 5) -> int:
    """The same from a plain function, in a thread. Ends: completed, and so do they."""
    app.enqueue_many_sync(_quick_ones(ctx, seed, children))
    return children


@app.job(run_in="process")
def fan_out_in_process(ctx: Context, seed: int, children: int = 5) -> int:
    """The same from a process of its own. Ends: completed, and so do they."""
    app.enqueue_many_sync(_quick_ones(ctx, seed, children))
    return children


@app.job
async def ladder(ctx: Context, seed: int) -> list[str]:
    """Hands in one job for each named priority, the lowest first. Ends: completed, and so do the rungs."""
    names = [priority.name.lower() for priority in sorted(Priority)]
    await app.enqueue_many([rung.using(priority=name, key=f"{ctx.job_id} {name}").call(seed, name) for name in names])
    return names


@app.job
async def rung(seed: int, priority: str = "normal") -> str:
    """A job that knows the priority it was given. Ends: completed."""
    return f"{priority} {seed}"


@app.job(key="order")
async def keyed(seed: int, order: str) -> str:
    """Handed in twice for the same order, it is one job. Ends: completed."""
    return f"{order} {seed}"


@app.job(retry=_SOON)
async def atomic_write(ctx: Context, seed: int) -> int:
    """Writes a row in the job's own transaction; the first attempt fails after writing. Ends: completed, with one row."""
    async with ctx.transaction() as tx:
        await tx.execute("select pg_advisory_xact_lock(hashtext(%s))", [TABLE])
        await tx.execute(_CREATE)
        await tx.execute(_WRITE, [ctx.job_id, ctx.attempt, seed])
        if ctx.attempt == 1:
            raise ConnectionError(f"seed {seed}: all of it is taken back")
    return seed


@app.job(retry=_SOON, atomic=True)
def atomic_in_thread(ctx: Context, seed: int) -> int:
    """The same as a plain function that is atomic as a whole. Ends: completed, with one row."""
    with ctx.db() as tx:
        tx.execute("select pg_advisory_xact_lock(hashtext(%s))", [TABLE])
        tx.execute(_CREATE)
        tx.execute(_WRITE, [ctx.job_id, ctx.attempt, seed])
    if ctx.attempt == 1:
        raise ConnectionError(f"seed {seed}: all of it is taken back")
    return seed


@app.job(retry=_SOON)
async def atomic_child(ctx: Context, seed: int) -> int:
    """Hands in a child in the job's own transaction; the first attempt fails after that. Ends: completed, with one child."""
    async with ctx.transaction() as tx:
        await quick.using(conn=tx).enqueue(seed)
        if ctx.attempt == 1:
            raise ConnectionError(f"seed {seed}: there was never a child")
    return seed


def _quick_ones(ctx: Context, seed: int, count: int) -> list[Call[int]]:
    return [quick.using(key=f"{ctx.job_id} {child}").call(seed + child) for child in range(count)]
