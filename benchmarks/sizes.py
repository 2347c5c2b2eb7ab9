"""How much of everything: the figures of the full run, and a quick one for a first look."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Sizes:
    rounds: int = 3
    jobs: int = 50_000
    """Drained at a time, and enqueued by one bulk call."""

    batch: int = 500
    """Jobs in one statement of the ceiling."""

    singles: int = 2_000
    """Enqueued one after the other, against as many bare inserts."""

    tasks: int = 200
    concurrent: int = 20_000
    """Jobs in total, enqueued one by one by `tasks` tasks at once."""

    wakeups: int = 100
    """In each round."""

    results: int = 200
    """Waited for, one after the other, in each round."""

    steps: int = 5_000
    """Of workflows, and workflows of one step, in each round."""

    links: int = 200
    """Of each of fifty chains."""

    sleepers: int = 100_000
    sleep_within: float = 60.0
    """Workflows that sleep, and the seconds in which all are to continue."""

    fan_in: int = 10_000
    """Jobs that one other waits for."""

    steady: float = 10.0
    """Seconds of steady load at each rate."""

    gone_through: int = 200_000
    """Jobs finished while a snapshot was held."""

    scheduled: int = 1_000_000
    finished: int = 5_000_000
    unknown: int = 500_000
    idle_warmup: float = 11.0
    """Seconds; an idle backend reports its counts within ten."""

    idle: float = 20.0
    progress: float = 10.0
    """Seconds for which jobs report progress."""

    delayed: int = 500
    """Jobs with a delay, of which each is timed."""

    flood: int = 100_000
    """Jobs that are due in the same moment."""

    idle_workers: int = 50
    pending: int = 1_000_000
    """Beside the finished jobs, for every GET of the web server."""

    sockets: int = 1_000
    live: float = 20.0
    """Seconds of updates for them."""

    concurrency: int = 400
    """Jobs at a time in each process of a draining worker."""


FULL = Sizes()
QUICK = Sizes(
    rounds=1,
    jobs=10_000,
    singles=300,
    concurrent=4_000,
    wakeups=40,
    results=60,
    steps=1_000,
    links=40,
    sleepers=2_000,
    sleep_within=5.0,
    fan_in=2_000,
    steady=4.0,
    gone_through=20_000,
    scheduled=50_000,
    finished=200_000,
    unknown=50_000,
    idle_warmup=3.0,
    idle=6.0,
    progress=5.0,
    delayed=100,
    flood=5_000,
    idle_workers=10,
    pending=50_000,
    sockets=200,
    live=5.0,
)
