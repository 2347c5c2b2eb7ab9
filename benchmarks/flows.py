"""(x) Chains, sleeping workflows, and a job that waits for ten thousand others."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta

from benchmarks.drain import await_gone, enqueue_all
from benchmarks.server import Probe, Server
from benchmarks.workers import Worker
from tenure import Continue, Tenure, WorkflowContext

CHAINS = 50
"""Chains that run at the same time."""

SLEEPERS_A_SECOND = 1_000.0
"""Workflows that can certainly begin to sleep in a second: the first sleep ends when all have begun."""

CONCURRENCY = 100
PATIENCE = 300.0
POLL = 0.2

app = Tenure()


@app.job
async def hop(left: int) -> Continue[None] | None:
    return Continue(hop, left - 1) if left > 1 else None


@app.workflow
async def sleep_until(ctx: WorkflowContext, due: datetime) -> float:
    """Returns how many seconds too late it continues."""
    await ctx.sleep("nap", until=due)
    return (datetime.now(UTC) - due).total_seconds()


@app.job
async def member() -> None:
    pass


@app.job
async def join() -> None:
    pass


def measure_links(server: Server, links: int) -> float:
    """Links a second of all chains, of which each has this many."""
    with server.database() as dsn, Probe(dsn) as probe:
        app.configure(dsn=dsn)
        with _worker(dsn):
            asyncio.run(enqueue_all(app, (hop.call(links) for _ in range(CHAINS))))
            _await(probe, "select count(*) from tenure.history", CHAINS * links)
        seconds = probe.one("select extract(epoch from max(finished_at) - min(started_at))::float8 from tenure.history")
    return CHAINS * links / float(seconds)


def measure_sleepers(server: Server, count: int, within: float) -> list[float]:
    """How late each continues, in milliseconds. Their sleeps end evenly `within` seconds."""
    with server.database() as dsn, Probe(dsn) as probe, _worker(dsn):
        app.configure(dsn=dsn)
        first = datetime.now(UTC) + timedelta(seconds=5 + count / SLEEPERS_A_SECOND)
        calls = (sleep_until.call(first + timedelta(seconds=within * number / count)) for number in range(count))
        asyncio.run(enqueue_all(app, calls))
        _await(probe, "select count(*) from tenure.jobs where state = 'waiting'", count)
        if datetime.now(UTC) > first:
            raise RuntimeError(f"{count} workflows needed more than {count / SLEEPERS_A_SECOND:.0f} s to begin to sleep")
        time.sleep((first - datetime.now(UTC)).total_seconds() + within)
        _await(probe, "select count(*) from tenure.history", count)
        return [float(late) * 1000 for (late,) in probe.rows("select output::text::float8 from tenure.history")]


def measure_fan_in(server: Server, count: int) -> float:
    """Milliseconds from the end of the last of them to the start of the job that waits for all."""
    with server.database() as dsn, Probe(dsn) as probe:
        app.configure(dsn=dsn)
        ids = asyncio.run(enqueue_all(app, (member.call() for _ in range(count))))
        ids += asyncio.run(enqueue_all(app, iter([join.using(after=ids).call()])))
        with _worker(dsn) as worker:
            await_gone(probe, worker, ids)
        waited = """select extract(epoch from max(j.started_at) - max(m.finished_at))
                      from tenure.history j, tenure.history m where j.kind = 'join' and m.kind = 'member'"""
        return float(probe.one(waited)) * 1000


def _worker(dsn: str) -> Worker:
    return Worker(dsn, app="benchmarks.flows:app", concurrency=CONCURRENCY)


def _await(probe: Probe, statement: str, count: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while (found := probe.one(statement)) < count:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{found} of {count} after {PATIENCE:.0f} s: {statement}")
        time.sleep(POLL)
