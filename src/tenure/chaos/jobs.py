"""The jobs of a campaign. Each run records its start and its end, and returns which run made the output.

The name of a kind tells the checker what to expect (`tenure.chaos.invariants.traces`): `atomic` leaves one effect, `ordered` is
enqueued with an order row, kinds that begin with `stubborn` may continue after they were canceled, of `limited_3` no more than
three are held at a time, kinds that begin with `changing` are under limits that change, and rows of kinds that begin with
`refused` are sometimes refused. Of kinds that begin with `chained`, clients request only the first link. Kinds that begin with
`workflow` are in `tenure.chaos.workflows`.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypedDict

from tenure import Cancel, Context, Continue, Fail, Limit, Retry, Snooze, Tenure
from tenure.chaos.handler_files import append_line, campaign_time
from tenure.chaos.ledger import HandlerLine

QUICK_RETRY = Retry(max_attempts=5, backoff="exponential", initial="50ms", max_backoff="1s")

JOB_LEASE = 2.0
"""Seconds, for kinds that have a lease of their own."""

CHANGED_KINDS = ("changing", "changing_declared")

MAX_LEASES = 2.5
"""The longest duration of a handler, in leases, if nothing happens to its process."""

app = Tenure()


def block(seconds: float) -> None:
    """Like `time.sleep`, which raises an error in processes whose clock libfaketime has moved."""
    threading.Event().wait(seconds)


class RunOutput(TypedDict):
    """Which run made this output. It must be the run that settles the job."""

    n: int | None
    """The number of the request; None for jobs of a schedule."""
    fence: int
    worker: str


@contextmanager
def recorded(ctx: Context, n: int | None) -> Iterator[RunOutput]:
    _write_line("started", ctx, n)
    how = "raised"
    try:
        yield RunOutput(n=n, fence=ctx.fence, worker=str(ctx.worker_id))
        how = "returned"
    except asyncio.CancelledError:
        how = "aborted"
        raise
    finally:
        _write_line(how, ctx, n)


def _write_line(what: str, ctx: Context, n: int | None) -> None:
    run = HandlerLine(what, campaign_time(), str(ctx.job_id), n, ctx.fence, ctx.attempt, str(ctx.worker_id), os.getpid())
    append_line("runs", run)


# The bulk: usually finished before a fault can hit them


@app.job
async def quick(ctx: Context, n: int) -> RunOutput:
    with recorded(ctx, n) as output:
        return output


@app.job
async def brief(ctx: Context, n: int, seconds: float) -> RunOutput:
    with recorded(ctx, n) as output:
        await asyncio.sleep(seconds)
        return output


@app.job(key_for="forever")
async def keyed(ctx: Context, n: int, word: str) -> RunOutput:
    with recorded(ctx, n) as output:
        assert word
        return output


@app.job
async def ordered(ctx: Context, n: int) -> RunOutput:
    """Enqueued with an order row, in the caller's transaction."""
    with recorded(ctx, n) as output:
        return output


@app.job(retry=QUICK_RETRY)
async def atomic(ctx: Context, n: int, seconds: float) -> RunOutput:
    """Writes its effect and completes in one transaction."""
    with recorded(ctx, n) as output:
        async with ctx.transaction() as tx:
            await tx.execute(
                "insert into chaos.effects (relation, n, job, fence) values ('effects', %s, %s, %s)", [n, ctx.job_id, ctx.fence]
            )
            await asyncio.sleep(seconds)
        return output


@app.job(name="limited_3", concurrency=Limit(3), retry=QUICK_RETRY)
async def limited(ctx: Context, n: int, seconds: float) -> RunOutput:
    with recorded(ctx, n) as output:
        await asyncio.sleep(seconds)
        return output


# Chains, and jobs that wait for them


@app.job(retry=QUICK_RETRY)
async def chained(ctx: Context, n: int, links: int) -> Continue[RunOutput]:
    """Starts a chain, and enqueues a job that waits for its end."""
    with recorded(ctx, n):
        await chained_join.using(after=[ctx.job_id], on_blocker_failure="run").enqueue()
        return Continue(chained_link, links)


@app.job(retry=QUICK_RETRY)
async def chained_link(ctx: Context, left: int) -> RunOutput | Continue[RunOutput]:
    with recorded(ctx, None) as output:
        if left > 1:
            return Continue(chained_link.using(delay="20ms") if left % 2 else chained_link, left - 1)
        return output


@app.job(retry=QUICK_RETRY)
async def chained_join(ctx: Context) -> RunOutput:
    with recorded(ctx, None) as output:
        assert len(ctx.blockers) == 1
        return output


# Under limits that change


@app.job(retry=QUICK_RETRY)
async def changing(ctx: Context, n: int, failures: int) -> RunOutput:
    with recorded(ctx, n) as output:
        if ctx.attempt <= failures:
            raise RuntimeError(f"attempt {ctx.attempt} of {n}")
        return output


@app.job(concurrency=Limit(4), retry=QUICK_RETRY)
async def changing_declared(ctx: Context, n: int, seconds: float) -> RunOutput:
    with recorded(ctx, n) as output:
        await asyncio.sleep(seconds)
        return output


# Rows that are sometimes refused


@app.job(retry=QUICK_RETRY)
async def refused(ctx: Context, n: int) -> RunOutput:
    with recorded(ctx, n) as output:
        return output


@app.job(retry=QUICK_RETRY)
async def refused_flaky(ctx: Context, n: int, failures: int) -> RunOutput:
    with recorded(ctx, n) as output:
        if ctx.attempt <= failures:
            raise RuntimeError(f"attempt {ctx.attempt} of {n}")
        return output


@app.job(lease="1s", retry=QUICK_RETRY)
async def refused_without_heartbeat(ctx: Context, n: int) -> RunOutput:
    """Has a lease of its own, which its first run does not renew."""
    with recorded(ctx, n) as output:
        if ctx.fence == 1:
            await asyncio.sleep(3)
        return output


# About as long as a lease


@app.job(retry=QUICK_RETRY)
async def steady(ctx: Context, n: int, seconds: float) -> RunOutput:
    with recorded(ctx, n) as output:
        step = seconds / 10
        for tenth in range(10):
            await asyncio.sleep(step)
            ctx.progress(tenth * 10)
        return output


@app.job(lease=f"{JOB_LEASE}s", retry=QUICK_RETRY)
async def with_own_lease(ctx: Context, n: int, seconds: float) -> RunOutput:
    """Has a lease of its own, and renews it."""
    with recorded(ctx, n) as output:
        ends = time.monotonic() + seconds
        while (left := ends - time.monotonic()) > 0:
            await asyncio.sleep(min(left, 0.4))
            ctx.heartbeat()
        return output


@app.job(retry=QUICK_RETRY)
def threaded(ctx: Context, n: int, seconds: float) -> RunOutput:
    with recorded(ctx, n) as output:
        ends = time.monotonic() + seconds
        while (left := ends - time.monotonic()) > 0:
            ctx.signal.check()
            block(min(left, 0.2))
        return output


@app.job(run_in="process", retry=QUICK_RETRY)
def in_process(ctx: Context, n: int, seconds: float) -> RunOutput:
    with recorded(ctx, n) as output:
        block(seconds)
        return output


# Failures, cancellations, snoozes, timeouts


@app.job(retry=QUICK_RETRY)
async def flaky(ctx: Context, n: int, failures: int) -> RunOutput:
    with recorded(ctx, n) as output:
        if ctx.attempt <= failures:
            raise RuntimeError(f"attempt {ctx.attempt} of {n}")
        return output


@app.job(retry=Retry(max_attempts=2, backoff="fixed", initial="50ms"))
async def always_failing(ctx: Context, n: int) -> RunOutput:
    with recorded(ctx, n):
        raise RuntimeError("a NUL \0 and a lone surrogate \ud800")


@app.job
async def failed_by_handler(ctx: Context, n: int) -> RunOutput:
    with recorded(ctx, n):
        raise Fail("it cannot succeed")


@app.job
async def canceled_by_handler(ctx: Context, n: int) -> RunOutput:
    with recorded(ctx, n):
        raise Cancel("not needed any more")


@app.job
async def snoozing(ctx: Context, n: int, times: int) -> RunOutput:
    with recorded(ctx, n) as output:
        if ctx.fence <= times:
            raise Snooze("200ms")
        return output


@app.job(timeout="500ms", retry=Retry(max_attempts=2, backoff="fixed", initial="50ms"))
async def timing_out(ctx: Context, n: int) -> RunOutput:
    with recorded(ctx, n) as output:
        await asyncio.sleep(30)
        return output


@app.job
async def large_input(ctx: Context, n: int, text: str) -> RunOutput:
    with recorded(ctx, n) as output:
        assert len(text) > 1
        return output


@app.job(retry=QUICK_RETRY)
async def two_connections(ctx: Context, n: int) -> RunOutput:
    """Holds a connection of the pool while it needs another one."""
    with recorded(ctx, n) as output:
        async with ctx.db() as connection:
            await connection.execute("select 1")
            async with ctx.transaction() as tx:
                await tx.execute("select 1")
        return output


# Hostile


@app.job(timeout=None, retry=Retry(max_attempts=2, backoff="fixed", initial="50ms"))
async def self_canceling(ctx: Context, n: int) -> RunOutput:
    """Has a timeout of its own: a timer that cancels the task."""
    with recorded(ctx, n) as output:
        task = asyncio.current_task()
        assert task is not None
        asyncio.get_running_loop().call_later(0.05, task.cancel)
        await asyncio.sleep(3600)
        return output


@app.job
def forking(ctx: Context, n: int) -> RunOutput:
    """Leaves a process behind, which must not outlive its worker."""
    with recorded(ctx, n) as output:
        if os.fork() == 0:
            block(3600)
            os._exit(0)
        return output


@app.job(timeout="500ms", retry=Retry(max_attempts=1))
async def stubborn(ctx: Context, n: int) -> RunOutput:
    """Ignores its cancellation."""
    with recorded(ctx, n) as output:
        ends = time.monotonic() + 6
        while time.monotonic() < ends:
            try:
                await asyncio.sleep(0.5)
            except asyncio.CancelledError:
                continue
        return output


@app.job
async def blocking(ctx: Context, n: int, seconds: float) -> RunOutput:
    """Blocks the event loop of its process, up to longer than a lease."""
    with recorded(ctx, n) as output:
        block(seconds)
        return output


@app.job
def holding_the_gil(ctx: Context, n: int) -> RunOutput:
    """Holds the GIL, like C code that does not release it."""
    with recorded(ctx, n) as output:
        ctypes.PyDLL(None).usleep(1_000_000)
        return output


@app.job
async def exiting(ctx: Context, n: int) -> RunOutput:
    with recorded(ctx, n):
        os._exit(3)


@app.job
async def killing_itself(ctx: Context, n: int) -> RunOutput:
    with recorded(ctx, n) as output:
        os.kill(os.getpid(), signal.SIGKILL)
        return output


@app.job(run_in="process")
def segfaulting(ctx: Context, n: int) -> RunOutput:
    with recorded(ctx, n) as output:
        sys.stderr.close()
        ctypes.string_at(0)
        return output
