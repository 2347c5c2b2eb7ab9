"""A leader stops or is killed: seconds until another worker performs its duties."""

from __future__ import annotations

import signal
from collections.abc import Callable

from tenure.chaos.drills.environment import DrillEnvironment, DrillResult, open_environment, percentile, until
from tenure.chaos.workers import CampaignWorker

TIMES = 6
START_TIMEOUT = 30.0
GOAL_STOPPED = 1.0  # seconds
GOAL_KILLED = 15.0
GOAL_ADVISORY = 2.5

# A released duty is free when its lease ends; the new holder records when it acquired it.
RECORD_HANDOVERS = (
    "create table public.handovers (old uuid, new uuid, free_at timestamptz, taken_at timestamptz)",
    """create function public.handed_over() returns trigger language plpgsql as $$ begin
         insert into public.handovers values (old.holder, new.holder, old.expires_at, new.acquired_at); return null; end $$""",
    """create trigger handed_over after update on tenure.leases for each row
         when (old.holder <> new.holder) execute function public.handed_over()""",
)
SINCE_KILLED = "extract(epoch from taken_at - killed_at)"
HELD = "select count(*) from tenure.leases where expires_at > clock_timestamp() and (metadata ->> 'pid')::int {} {}"


async def failovers_in_order(show: Callable[[str], None]) -> DrillResult:
    gaps = await _failovers(show, signal.SIGTERM, "extract(epoch from taken_at - free_at)")
    return _result("failovers_in_order", gaps, GOAL_STOPPED, "released them")


async def failovers_killed(show: Callable[[str], None]) -> DrillResult:
    gaps = await _failovers(show, signal.SIGKILL, SINCE_KILLED)
    return _result("failovers_killed", gaps, GOAL_KILLED, "was killed")


async def failovers_advisory(show: Callable[[str], None]) -> DrillResult:
    """PostgreSQL releases the lock of a killed leader with its session, so no lease has to expire."""
    gaps = await _failovers(show, signal.SIGKILL, SINCE_KILLED, TENURE_LEADER_STRATEGY="advisory")
    return _result("failovers_advisory", gaps, GOAL_ADVISORY, "was killed, with leader.strategy = advisory")


async def _failovers(show: Callable[[str], None], how: signal.Signals, gap: str, **settings: str) -> list[float]:
    gaps: list[float] = []
    async with open_environment() as environment:
        workers = [environment.start_worker("--processes", "1", TENURE_LEADER_ROTATE_SECONDS="0", **settings) for _ in range(2)]
        await until(lambda: environment.ready_processes() == len(workers), within=START_TIMEOUT)
        for statement in RECORD_HANDOVERS:
            environment.execute(statement)
        for number in range(TIMES):
            gaps += await _once(environment, workers, how, gap)
            show(f"{number + 1} leaders ended: longest gap {max(gaps):.2f} s")
    return gaps


async def _once(environment: DrillEnvironment, workers: list[CampaignWorker], how: signal.Signals, gap: str) -> list[float]:
    duties = environment.fetch("select count(*) from tenure.leases")
    leader = max(workers, key=lambda worker: environment.fetch(HELD.format("=", worker.pid)))
    await until(lambda: environment.fetch(HELD.format("=", leader.pid)) == duties, within=START_TIMEOUT)
    [(killed_at,)] = environment.fetch("select extract(epoch from clock_timestamp())::float8")
    environment.execute("truncate public.handovers")
    if how is signal.SIGKILL:
        leader.kill_all()
    else:
        leader.stop()
    await until(lambda: environment.fetch(HELD.format("<>", leader.pid)) == duties, within=3 * GOAL_KILLED)
    gaps = environment.fetch(f"select ({gap.replace('killed_at', f'to_timestamp({killed_at})')})::float8 from public.handovers")  # noqa: S608
    leader.start()
    await until(lambda: environment.ready_processes() == len(workers), within=START_TIMEOUT)
    return [float(seconds) for (seconds,) in gaps]


def _result(name: str, gaps: list[float], goal: float, after: str) -> DrillResult:
    worst = max(gaps)
    measured = f"{TIMES} leaders, {len(gaps)} duties: p50 {percentile(gaps, 0.5):.2f} s, longest {worst:.2f} s"
    return DrillResult(
        name, f"another worker performs its duties within {goal:g} s after the leader {after}", measured, worst <= goal
    )
