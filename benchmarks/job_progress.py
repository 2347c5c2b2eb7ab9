"""(j) What it costs PostgreSQL when jobs report progress all the time.

20 jobs call `ctx.progress` in a tight loop for some seconds, then 20 jobs do the same without it: the difference counts. Plain
functions, because they run in parallel: on the event loop the first one would keep all the others from starting.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from uuid import UUID

from benchmarks.drain import await_gone, enqueue_all
from benchmarks.server import Probe, Server
from benchmarks.workers import Worker
from tenure import Context, Job, Tenure

JOBS = 20
CALLS = 1_000  # in one go

app = Tenure()


@app.job
def report_progress(ctx: Context, seconds: float) -> int:
    return _repeat(seconds, ctx.progress)


@app.job
def report_nothing(ctx: Context, seconds: float) -> int:  # noqa: ARG001 - like the other one
    return _repeat(seconds, abs)


def _repeat(seconds: float, call: Callable[[float], object]) -> int:
    times, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        for n in range(CALLS):
            call(100 * n / CALLS)
        times += CALLS
    return times


def measure(server: Server, seconds: float) -> tuple[float, float]:
    """Statements a second that progress causes for all jobs together, and calls of it a second."""
    with server.no_autovacuum():
        quiet, _ = _run(server, report_nothing, seconds)
        reporting, calls = _run(server, report_progress, seconds)
    return (reporting - quiet) / seconds, calls / seconds


def _run(server: Server, job: Job[..., [float], int, int], seconds: float) -> tuple[int, int]:
    """All statements from the making of the database to the end of the worker, and the calls."""
    with server.database() as dsn:
        with Worker(dsn, app="benchmarks.job_progress:app", concurrency=JOBS) as worker:
            ids = asyncio.run(_enqueue_jobs(dsn, job, seconds))
            time.sleep(seconds)
            with Probe(dsn) as probe:
                await_gone(probe, worker, ids)
                calls = _calls(probe)
                own = probe.statements
        return server.commits(dsn) - own, calls


async def _enqueue_jobs(dsn: str, job: Job[..., [float], int, int], seconds: float) -> list[UUID]:
    app.configure(dsn=dsn)
    return await enqueue_all(app, (job.call(seconds) for _ in range(JOBS)))


def _calls(probe: Probe) -> int:
    [(calls, fewest, at_once)] = probe.rows(
        "select sum(output::text::bigint), min(output::text::bigint), max(started_at) < min(finished_at) from tenure.history"
    )
    if not at_once or fewest < CALLS:
        raise RuntimeError(f"the jobs did not run at once, or one of them called {fewest} times only")
    return int(calls)
