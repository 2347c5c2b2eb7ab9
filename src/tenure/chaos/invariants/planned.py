"""What the record says of schedules: their definitions, and what became of their planned times."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from itertools import takewhile

from tenure.chaos.ledger import Plan, Tick
from tenure.model.schedules import Schedule


class Planned:
    """All of it is kept: it grows by a few lines a second."""

    def __init__(self, plans: Iterable[Plan], ticks: Iterable[Tick]) -> None:
        self.plans: dict[str, list[Plan]] = {}
        self.ticks: dict[str, list[Tick]] = {}
        self.jobs: dict[str, Tick] = {}
        """By job, the tick that it stands for; the first, should there be two."""
        self.count = 0
        for plan in plans:
            self.plans.setdefault(plan.name, []).append(plan)
        for tick in ticks:
            self.count += tick.was is None
            self.ticks.setdefault(tick.schedule, []).append(tick)
            if tick.job is not None:
                self.jobs.setdefault(tick.job, tick)


class Times:
    """The planned times of a schedule, as its definition has them, in (since, until]."""

    def __init__(self, plan: Plan, since: float, until: float) -> None:
        schedule = Schedule(
            name=plan.name,
            kind=plan.kind,
            cron=plan.cron,
            every=None if plan.every is None else timedelta(seconds=plan.every),
            timezone=plan.timezone,
        )
        end = datetime.fromtimestamp(until, UTC)
        planned = schedule.planned(datetime.fromtimestamp(since, UTC))
        self.all = [time.timestamp() for time in takewhile(lambda time: time <= end, planned)]

    def within(self, first: float, last: float) -> range:
        """The places of those in [first, last]."""
        return range(bisect_left(self.all, first), bisect_right(self.all, last))

    def after(self, moment: float, until: float) -> int:
        """How many came in (moment, until]."""
        return bisect_right(self.all, until) - bisect_right(self.all, moment)
