from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby, pairwise

from tenure.chaos.invariants.case import Case, Rule
from tenure.chaos.invariants.lives import Life
from tenure.chaos.invariants.planned import Times
from tenure.chaos.ledger import Move, Plan, Tick
from tenure.chaos.verdict import Invariant
from tenure.model.schedules import GRACE
from tenure.model.states import State

LEGAL = frozenset(
    [(None, "enqueued"), (None, "skipped"), (None, "queued"), (None, "missed"), ("queued", "enqueued"), ("queued", "skipped")]
)

Found = Iterator[tuple[str, Tick]]
"""What is wrong, and with which tick."""


class Ticks(Rule):
    invariant = Invariant(
        "I10",
        "each tick once",
        "every planned time of a schedule is recorded once, as its catch-up and overlap say, with its one job if it has one",
    )

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._over: dict[str, float] = {}
        """By job of a schedule: since when it is not live any more."""

    def moved(self, _life: Life, move: Move) -> None:
        if move.state == State.DEAD_LETTER and move.job in self.case.planned.jobs:
            self._over[move.job] = move.at

    def left(self, _life: Life, move: Move) -> None:
        if move.job in self.case.planned.jobs:
            self._over[move.job] = move.at

    def end(self) -> None:
        planned = self.case.planned
        for name in dict.fromkeys([*self.case.course.schedules, *planned.plans, *planned.ticks]):
            plans = planned.plans.get(name)
            if plans is None:
                self.breach("is declared by the workers' code, or has ticks, but there is no trace of it", schedule=name)
                continue
            self._judge_plans(name, plans)
            self._judge_ticks(plans, planned.ticks.get(name, []))

    def _judge_plans(self, name: str, plans: list[Plan]) -> None:
        """Nobody changes them, but that they are paused once all is healed."""
        if plans[0].was_since is not None:
            self.breach("was there before the record began", schedule=name)
        for before, plan in pairwise(plans):
            if plan.was_since != before.since:
                self.breach(f"has a gap in its record before change {plan.seq}", schedule=name)
            if plan.since is None:
                self.breach(f"was deleted (change {plan.seq}), but nobody asked for that", schedule=name)
            elif before.since is not None and plan.since < before.since:
                self.breach(f"went back in time (change {plan.seq})", schedule=name, planned=before.since)
            changed = _definition(before) != _definition(plan)
            paused = plan.paused and not before.paused and plan.at < self.case.course.healed
            if changed or paused:
                self.breach(f"was changed, paused or retired (change {plan.seq}), but nobody asked for that", schedule=name)

    def _judge_ticks(self, plans: list[Plan], ticks: list[Tick]) -> None:
        plan, first = plans[-1], plans[0].since or 0.0
        recorded = max(line.since or 0.0 for line in plans)
        latest = max((tick.until or tick.planned for tick in ticks), default=0.0)
        times = Times(plan, first, max(recorded, latest, self.case.course.healed))
        self._judge_times(plan, times, max(recorded, self.case.course.healed), ticks)
        checks: list[Callable[[], Found]] = [
            lambda: self._rows(ticks),
            lambda: self._jobs(plan, ticks),
            lambda: _caught_up(plan, times, ticks),
            lambda: self._overlaps(plan, ticks),
        ]
        for look in checks:
            for what, tick in look():
                self.breach(what, schedule=plan.name, planned=tick.planned, job=tick.job)

    def _judge_times(self, plan: Plan, times: Times, until: float, ticks: list[Tick]) -> None:
        """Each exactly once."""
        covered = [0] * len(times.all)
        for tick in ticks:
            if tick.was is not None or tick.by is not None:
                continue
            places = times.within(tick.planned, tick.until or tick.planned)
            if len(places) != tick.times or times.all[places[0]] != tick.planned:
                what = f"has a tick that stands for {tick.times} planned times, but there are {len(places)}"
                self.breach(what, schedule=plan.name, planned=tick.planned, job=tick.job)
            for place in places:
                covered[place] += 1
        for time, found in zip(times.all, covered, strict=True):
            if found != 1 and (found or time <= until):
                what = f"recorded this time {found} times" if found else "has no record of this time"
                self.breach(what, schedule=plan.name, planned=time)

    def _rows(self, ticks: list[Tick]) -> Found:
        stands: dict[float, str | None] = {}
        for tick in ticks:
            if (tick.was, tick.outcome) not in LEGAL:
                yield f"has a tick that went from {tick.was} to {tick.outcome} (change {tick.seq})", tick
            elif tick.was != stands.get(tick.planned):
                yield f"has a tick that was {stands.get(tick.planned)}, and went from {tick.was} to {tick.outcome}", tick
            stands[tick.planned] = tick.outcome
        for tick in {tick.planned: tick for tick in ticks}.values():
            if tick.outcome == "queued" and tick.planned <= self.case.course.healed:
                yield "has a tick that still waits in line at the end", tick

    def _jobs(self, plan: Plan, ticks: list[Tick]) -> Found:
        for tick in ticks:
            if (tick.outcome == "enqueued") != (tick.job is not None):
                yield f"has a tick that is {tick.outcome} with job {tick.job}", tick
            elif tick.job is not None:
                life = self.case.lives.get(tick.job)
                if life is None:
                    yield "has a tick whose job was never handed in", tick
                elif life.kind != plan.kind:
                    yield f"has a tick whose job is {life.kind}, not {plan.kind}", tick
                elif self.case.planned.jobs[tick.job] is not tick:
                    yield "has a tick with the job of another one", tick

    def _overlaps(self, plan: Plan, ticks: list[Tick]) -> Found:
        """Of those that may have one job at a time: it is over before the next comes, and nothing is left out without need."""
        before: Tick | None = None
        queued: set[float] = set()
        for _, group in groupby((tick for tick in ticks if tick.by is None), key=lambda tick: tick.xact):
            together = sorted(group, key=lambda tick: tick.planned)
            ran = [tick for tick in together if tick.outcome == "enqueued"]
            for tick in together:
                if tick.outcome in ("skipped", "queued") and not self._has_reason(plan, tick, before, ran, len(queued)):
                    yield f"has a tick that was {tick.outcome}, but nothing stood in its way", tick
                (queued.add if tick.outcome == "queued" else queued.discard)(tick.planned)
            for tick in ran:
                if before is not None and plan.overlap != "allow":
                    yield from self._follows(before, tick)
                before = tick

    def _has_reason(self, plan: Plan, tick: Tick, before: Tick | None, ran: list[Tick], queued: int) -> bool:
        if plan.overlap == "allow" or (plan.overlap == "skip" and tick.outcome == "queued"):
            return False
        if plan.overlap == "queue" and tick.outcome == "skipped":
            return queued >= plan.catch_up_limit
        if ran or queued:
            return True
        # It may have ended while this was being written down.
        over = None if before is None else self._over.get(before.job or "")
        return before is not None and (over is None or over >= tick.began - self.case.course.late)

    def _follows(self, before: Tick, tick: Tick) -> Found:
        over = self._over.get(before.job or "")
        if over is None or over > tick.at:
            yield f"handed in a job while job {before.job} of it was live", tick
        if tick.planned < before.planned:
            yield "handed in an earlier time after a later one", tick


def _caught_up(plan: Plan, times: Times, ticks: list[Tick]) -> Found:
    most = plan.catch_up_limit if plan.catch_up == "all" else 1
    for _, group in groupby((tick for tick in ticks if tick.was is None and tick.by is None), key=lambda tick: tick.xact):
        together = list(group)
        run = [tick for tick in together if tick.outcome != "missed"]
        if len(run) > most:
            yield f"caught up {len(run)} times at once, where {most} is the most", run[0]
        for tick in together:
            last = tick.until or tick.planned
            late = plan.catch_up == "none" and tick.at - last > GRACE.total_seconds()
            if tick.outcome == "missed" and not late and times.after(last, tick.at) < most:
                yield f"has missed a time that its catch-up ({plan.catch_up}) does not leave out", tick


def _definition(plan: Plan) -> tuple[object, ...]:
    return (*plan[3:10], plan.retired)
