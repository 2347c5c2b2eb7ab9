"""The jobs of a campaign. Each run notes its start and its end, and what it returns tells who made it.

A kind's name tells the checker what to expect: `atomic` leaves one effect, `ordered` came with an order, those that
begin with `stubborn` may go on after they were given up, of `limited_3` no more than three are held at a time, those that begin
with `changing` are under limits that change, and the rows of those that begin with `refused` are refused at times.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TypedDict

from tenure import Cancel, Context, Fail, Limit, Retry, Snooze, Tenure
from tenure.chaos.fleet import CLOCK, FOLDER
from tenure.chaos.ledger import HandlerLine, as_line

SOON = Retry(max_attempts=5, backoff="exponential", initial="50ms", max_backoff="1s")

JOB_LEASE = 2.0
"""Seconds, of kinds that have a lease of their own."""

CHANGED_KINDS = ("changing", "changing_declared")

LONGEST = 2.5
"""Leases that a handler lasts, at most, if nothing happens to its process."""

app = Tenure()


class Made(TypedDict):
    """Who made this result. What is settled must name the run that settled it."""

    n: int | None
    """None: a schedule's, which nobody offered."""
    fence: int
    worker: str


@contextmanager
def noted(ctx: Context, n: int | None) -> Iterator[Made]:
    _note("started", ctx, n)
    how = "raised"
    try:
        yield Made(n=n, fence=ctx.fence, worker=str(ctx.worker_id))
        how = "returned"
    except asyncio.CancelledError:
        how = "aborted"
        raise
    finally:
        _note(how, ctx, n)


def _note(what: str, ctx: Context, n: int | None) -> None:
    run = HandlerLine(what, _now(), str(ctx.job_id), n, ctx.fence, ctx.attempt, str(ctx.worker_id), os.getpid())
    os.write(_file(os.getpid()), as_line(run).encode())


def _now() -> float:
    """Of the campaign's clock: this process's own may have been moved."""
    return time.monotonic() + float(os.environ.get(CLOCK, "0"))


@cache
def _file(pid: int) -> int:
    name = f"runs-{pid}-{time.monotonic_ns()}.jsonl"
    return os.open(Path(os.environ[FOLDER]) / name, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)


# The bulk: over before anything can happen to it, most of the time


@app.job
async def quick(ctx: Context, n: int) -> Made:
    with noted(ctx, n) as made:
        return made


@app.job
async def brief(ctx: Context, n: int, seconds: float) -> Made:
    with noted(ctx, n) as made:
        await asyncio.sleep(seconds)
        return made


@app.job(key_for="forever")
async def keyed(ctx: Context, n: int, word: str) -> Made:
    with noted(ctx, n) as made:
        assert word
        return made


@app.job
async def ordered(ctx: Context, n: int) -> Made:
    """Handed in with an order, in the caller's transaction."""
    with noted(ctx, n) as made:
        return made


@app.job(retry=SOON)
async def atomic(ctx: Context, n: int, seconds: float) -> Made:
    """Its effect and its completion are one transaction."""
    with noted(ctx, n) as made:
        async with ctx.transaction() as tx:
            await tx.execute(
                "insert into chaos.effects (relation, n, job, fence) values ('effects', %s, %s, %s)", [n, ctx.job_id, ctx.fence]
            )
            await asyncio.sleep(seconds)
        return made


@app.job(name="limited_3", concurrency=Limit(3), retry=SOON)
async def limited(ctx: Context, n: int, seconds: float) -> Made:
    with noted(ctx, n) as made:
        await asyncio.sleep(seconds)
        return made


# Under limits that change


@app.job(retry=SOON)
async def changing(ctx: Context, n: int, failures: int) -> Made:
    with noted(ctx, n) as made:
        if ctx.attempt <= failures:
            raise RuntimeError(f"attempt {ctx.attempt} of {n}")
        return made


@app.job(concurrency=Limit(4), retry=SOON)
async def changing_declared(ctx: Context, n: int, seconds: float) -> Made:
    with noted(ctx, n) as made:
        await asyncio.sleep(seconds)
        return made


# Whose rows are refused at times


@app.job(retry=SOON)
async def refused(ctx: Context, n: int) -> Made:
    with noted(ctx, n) as made:
        return made


@app.job(retry=SOON)
async def refused_flaky(ctx: Context, n: int, failures: int) -> Made:
    with noted(ctx, n) as made:
        if ctx.attempt <= failures:
            raise RuntimeError(f"attempt {ctx.attempt} of {n}")
        return made


@app.job(lease="1s", retry=SOON)
async def refused_silent(ctx: Context, n: int) -> Made:
    """Has a lease of its own and does not renew it the first time."""
    with noted(ctx, n) as made:
        if ctx.fence == 1:
            await asyncio.sleep(3)
        return made


# As long as a lease, more or less


@app.job(retry=SOON)
async def steady(ctx: Context, n: int, seconds: float) -> Made:
    with noted(ctx, n) as made:
        step = seconds / 10
        for tenth in range(10):
            await asyncio.sleep(step)
            ctx.progress(tenth * 10)
        return made


@app.job(lease=f"{JOB_LEASE}s", retry=SOON)
async def leased(ctx: Context, n: int, seconds: float) -> Made:
    """Has a lease of its own, and renews it."""
    with noted(ctx, n) as made:
        ends = time.monotonic() + seconds
        while (left := ends - time.monotonic()) > 0:
            await asyncio.sleep(min(left, 0.4))
            ctx.heartbeat()
        return made


@app.job(retry=SOON)
def threaded(ctx: Context, n: int, seconds: float) -> Made:
    with noted(ctx, n) as made:
        ends = time.monotonic() + seconds
        while (left := ends - time.monotonic()) > 0:
            ctx.signal.check()
            time.sleep(min(left, 0.2))
        return made


@app.job(run_in="process", retry=SOON)
def celled(ctx: Context, n: int, seconds: float) -> Made:
    with noted(ctx, n) as made:
        time.sleep(seconds)
        return made


# That do not go straight


@app.job(retry=SOON)
async def flaky(ctx: Context, n: int, failures: int) -> Made:
    with noted(ctx, n) as made:
        if ctx.attempt <= failures:
            raise RuntimeError(f"attempt {ctx.attempt} of {n}")
        return made


@app.job(retry=Retry(max_attempts=2, backoff="fixed", initial="50ms"))
async def doomed(ctx: Context, n: int) -> Made:
    with noted(ctx, n):
        raise RuntimeError("a NUL \0, a lone surrogate \ud800, and an end")


@app.job
async def given_up(ctx: Context, n: int) -> Made:
    with noted(ctx, n):
        raise Fail("nothing to be done")


@app.job
async def called_off(ctx: Context, n: int) -> Made:
    with noted(ctx, n):
        raise Cancel("not wanted any more")


@app.job
async def sleepy(ctx: Context, n: int, naps: int) -> Made:
    with noted(ctx, n) as made:
        if ctx.fence <= naps:
            raise Snooze("200ms")
        return made


@app.job(timeout="500ms", retry=Retry(max_attempts=2, backoff="fixed", initial="50ms"))
async def overdue(ctx: Context, n: int) -> Made:
    with noted(ctx, n) as made:
        await asyncio.sleep(30)
        return made


@app.job
async def bulky(ctx: Context, n: int, load: str) -> Made:
    with noted(ctx, n) as made:
        assert len(load) > 1
        return made


@app.job(retry=SOON)
async def two_connections(ctx: Context, n: int) -> Made:
    """Holds a connection of the pool while it asks for another one."""
    with noted(ctx, n) as made:
        async with ctx.db() as connection:
            await connection.execute("select 1")
            async with ctx.transaction() as tx:
                await tx.execute("select 1")
        return made


# Hostile


@app.job(timeout=None, retry=Retry(max_attempts=2, backoff="fixed", initial="50ms"))
async def self_canceling(ctx: Context, n: int) -> Made:
    """Has a time limit of its own: a timer that cancels the task."""
    with noted(ctx, n) as made:
        task = asyncio.current_task()
        assert task is not None
        asyncio.get_running_loop().call_later(0.05, task.cancel)
        await asyncio.sleep(3600)
        return made


@app.job
def forking(ctx: Context, n: int) -> Made:
    """Leaves a process behind, which must not outlive its worker."""
    with noted(ctx, n) as made:
        if os.fork() == 0:
            time.sleep(3600)
            os._exit(0)
        return made


@app.job(timeout="500ms", retry=Retry(max_attempts=1))
async def stubborn(ctx: Context, n: int) -> Made:
    """Does not hear that it is over."""
    with noted(ctx, n) as made:
        ends = time.monotonic() + 6
        while time.monotonic() < ends:
            try:
                await asyncio.sleep(0.5)
            except asyncio.CancelledError:
                continue
        return made


@app.job
async def blocking(ctx: Context, n: int, seconds: float) -> Made:
    """Holds up the loop of its process, for longer than a lease."""
    with noted(ctx, n) as made:
        time.sleep(seconds)  # noqa: ASYNC251 - the point of it
        return made


@app.job
def hogging(ctx: Context, n: int) -> Made:
    """Holds the GIL, as code in C does that does not release it."""
    with noted(ctx, n) as made:
        ctypes.PyDLL(None).usleep(1_000_000)
        return made


@app.job
async def exiting(ctx: Context, n: int) -> Made:
    with noted(ctx, n):
        os._exit(3)


@app.job
async def suicidal(ctx: Context, n: int) -> Made:
    with noted(ctx, n) as made:
        os.kill(os.getpid(), signal.SIGKILL)
        return made


@app.job(run_in="process")
def segfaulting(ctx: Context, n: int) -> Made:
    with noted(ctx, n) as made:
        sys.stderr.close()
        ctypes.string_at(0)
        return made
