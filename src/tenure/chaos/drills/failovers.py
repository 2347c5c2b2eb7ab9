"""A leader leaves or dies, and the seconds until another does its duties."""

from __future__ import annotations

import signal
from collections.abc import Callable

from tenure.chaos.drills.ground import Figure, Ground, ground, percentile, until
from tenure.chaos.fleet import Worker

TIMES = 6
START = 30.0
IN_ORDER = 1.0
KILLED = 15.0

# A duty that is given back ends with its lease; who takes it over says when.
WATCH = (
    "create table public.handovers (old uuid, new uuid, free_at timestamptz, taken_at timestamptz)",
    """create function public.handed_over() returns trigger language plpgsql as $$ begin
         insert into public.handovers values (old.holder, new.holder, old.expires_at, new.acquired_at); return null; end $$""",
    """create trigger handed_over after update on tenure.leases for each row
         when (old.holder <> new.holder) execute function public.handed_over()""",
)
HELD = "select count(*) from tenure.leases where expires_at > clock_timestamp() and (metadata ->> 'pid')::int {} {}"


async def failovers_in_order(tell: Callable[[str], None]) -> Figure:
    gaps = await _failovers(tell, signal.SIGTERM, "extract(epoch from taken_at - free_at)")
    return _figure("failovers_in_order", gaps, IN_ORDER, "gave its duties back")


async def failovers_killed(tell: Callable[[str], None]) -> Figure:
    gaps = await _failovers(tell, signal.SIGKILL, "extract(epoch from taken_at - struck)")
    return _figure("failovers_killed", gaps, KILLED, "was killed")


async def _failovers(tell: Callable[[str], None], how: signal.Signals, gap: str) -> list[float]:
    gaps: list[float] = []
    async with ground() as laid:
        fleet = [laid.worker("--processes", "1", TENURE_LEADER_ROTATE_SECONDS="0") for _ in range(2)]
        await until(lambda: laid.ready() == len(fleet), within=START)
        for statement in WATCH:
            laid.tell(statement)
        for time in range(TIMES):
            gaps += await _once(laid, fleet, how, gap)
            tell(f"{time + 1} leaders gone: the longest gap {max(gaps):.2f} s")
    return gaps


async def _once(laid: Ground, fleet: list[Worker], how: signal.Signals, gap: str) -> list[float]:
    duties = laid.ask("select count(*) from tenure.leases")
    leader = max(fleet, key=lambda worker: laid.ask(HELD.format("=", worker.pid)))
    await until(lambda: laid.ask(HELD.format("=", leader.pid)) == duties, within=START)
    [(struck,)] = laid.ask("select extract(epoch from clock_timestamp())::float8")
    laid.tell("truncate public.handovers")
    if how is signal.SIGKILL:
        leader.kill_all()
    else:
        leader.stop()
    await until(lambda: laid.ask(HELD.format("<>", leader.pid)) == duties, within=3 * KILLED)
    gaps = laid.ask(f"select ({gap.replace('struck', f'to_timestamp({struck})')})::float8 from public.handovers")  # noqa: S608
    leader.start()
    await until(lambda: laid.ready() == len(fleet), within=START)
    return [float(seconds) for (seconds,) in gaps]


def _figure(name: str, gaps: list[float], goal: float, after: str) -> Figure:
    worst = max(gaps)
    measured = f"{TIMES} leaders, {len(gaps)} duties: p50 {percentile(gaps, 0.5):.2f} s, the longest {worst:.2f} s"
    return Figure(name, f"another does its duties within {goal:g} s after it {after}", measured, worst <= goal)
