"""What leaders do: I11 one leader per term, I10 each planned time once, I22 due jobs are promoted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby, pairwise
from typing import NamedTuple

from tenure.chaos.invariants.lookups import PlannedTimes
from tenure.chaos.invariants.rule import Case, Rule
from tenure.chaos.invariants.traces import REFUSED, JobTrace
from tenure.chaos.recorded_changes import Move, SeenScheduleChange, TermChange, TickChange
from tenure.chaos.verdict import Invariant
from tenure.model.schedules import GRACE
from tenure.model.states import State

# Terms


class OneLeaderPerTerm(Rule):
    invariant = Invariant("I11", "one leader per term", "the term of a duty never decreases, and a new holder has the next term")

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._newest: dict[str, tuple[str | None, int]] = {}

    def on_term(self, change: TermChange) -> None:
        if change.term is None:
            self.report(f"lost its row in term {change.was_term}", duty=change.duty)
            return
        before = self._newest.get(change.duty)
        wrong = None if before is None else _wrong(*before, change.holder, change.term)
        if wrong is not None:
            self.report(f"{wrong} (change {change.seq})", duty=change.duty)
        if before is None or change.term >= before[1]:
            self._newest[change.duty] = (change.holder, change.term)


def _wrong(was_holder: str | None, was_term: int, holder: str | None, term: int) -> str | None:
    if term < was_term:
        return f"was written by {holder} in term {term}, after term {was_term} of {was_holder} had begun"
    if term > was_term + 1:
        return f"went from term {was_term} to term {term}"
    if term == was_term and holder != was_holder:
        return f"went from {was_holder} to {holder} within term {term}"
    return None


# Schedules and due jobs

LEGAL_OUTCOMES = frozenset(
    [(None, "enqueued"), (None, "skipped"), (None, "queued"), (None, "missed"), ("queued", "enqueued"), ("queued", "skipped")]
)

STAGER = "stager"
MAX_DELAY = 8.0
"""Seconds, not counting faults, for which one leader that keeps its duty may leave due jobs unpromoted."""

MAX_DELAY_AFTER_HANDOVER = 30.0
"""The same if the duty changed its holder meanwhile: a failover takes its time."""

FAILOVER = 15.0
"""Seconds before a job was due in which a handover still delays its promotion."""


class BadTick(NamedTuple):
    what: str
    tick: TickChange


class EachTickOnce(Rule):
    invariant = Invariant(
        "I10",
        "each planned time once",
        "every planned time of a schedule is recorded once, according to its catch-up and overlap, with at most one job",
    )

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._ended: dict[str, float] = {}
        """By job of a schedule: since when it is no longer live."""

    def on_changed(self, _job: JobTrace, move: Move) -> None:
        if move.state == State.DEAD_LETTER and move.job in self.case.schedules.tick_of_job:
            self._ended[move.job] = move.at

    def on_removed(self, _job: JobTrace, move: Move) -> None:
        if move.job in self.case.schedules.tick_of_job:
            self._ended[move.job] = move.at

    def at_end(self) -> None:
        schedules = self.case.schedules
        for name in dict.fromkeys([*self.case.campaign.schedules, *schedules.changes, *schedules.ticks]):
            changes = schedules.changes.get(name)
            if changes is None:
                self.report("is declared by the workers' code, or has ticks, but its row was not recorded", schedule=name)
                continue
            self._check_definitions(name, changes)
            self._check_ticks(changes, schedules.ticks.get(name, []))

    def _check_definitions(self, name: str, changes: list[SeenScheduleChange]) -> None:
        """A campaign does not change its schedules; it only pauses them after the faults."""
        if changes[0].was_since is not None:
            self.report("existed before the record began", schedule=name)
        for before, after in pairwise(changes):
            if after.was_since != before.since:
                self.report(f"has a gap in its record before change {after.seq}", schedule=name)
            if after.since is None:
                self.report(f"was deleted (change {after.seq}) without a request", schedule=name)
            elif before.since is not None and after.since < before.since:
                self.report(f"went back in time (change {after.seq})", schedule=name, planned=before.since)
            changed = _definition(before) != _definition(after)
            paused = after.paused and not before.paused and after.at < self.case.campaign.healed
            if changed or paused:
                self.report(f"was changed, paused or retired (change {after.seq}) without a request", schedule=name)

    def _check_ticks(self, changes: list[SeenScheduleChange], ticks: list[TickChange]) -> None:
        definition, first = changes[-1], changes[0].since or 0.0
        recorded = max(change.since or 0.0 for change in changes)
        latest = max((tick.until or tick.planned for tick in ticks), default=0.0)
        times = PlannedTimes(definition, first, max(recorded, latest, self.case.campaign.healed))
        self._check_times(definition, times, max(recorded, self.case.campaign.healed), ticks)
        checks: list[Callable[[], Iterator[BadTick]]] = [
            lambda: self._bad_rows(ticks),
            lambda: self._bad_jobs(definition, ticks),
            lambda: _bad_catch_up(definition, times, ticks),
            lambda: self._bad_overlaps(definition, ticks),
        ]
        for check in checks:
            for bad in check():
                self.report(bad.what, schedule=definition.name, planned=bad.tick.planned, job=bad.tick.job)

    def _check_times(self, definition: SeenScheduleChange, times: PlannedTimes, until: float, ticks: list[TickChange]) -> None:
        """Each planned time is recorded exactly once."""
        recorded = [0] * len(times.all)
        for tick in ticks:
            if tick.was is not None or tick.by is not None:
                continue
            covered = times.within(tick.planned, tick.until or tick.planned)
            if len(covered) != tick.times or times.all[covered[0]] != tick.planned:
                what = f"has a tick for {tick.times} planned times, but there are {len(covered)}"
                self.report(what, schedule=definition.name, planned=tick.planned, job=tick.job)
            for index in covered:
                recorded[index] += 1
        for time, found in zip(times.all, recorded, strict=True):
            if found != 1 and (found or time <= until):
                what = f"recorded this time {found} times" if found else "has no record of this time"
                self.report(what, schedule=definition.name, planned=time)

    def _bad_rows(self, ticks: list[TickChange]) -> Iterator[BadTick]:
        outcomes: dict[float, str | None] = {}
        for tick in ticks:
            if (tick.was, tick.outcome) not in LEGAL_OUTCOMES:
                yield BadTick(f"has a tick that went from {tick.was} to {tick.outcome} (change {tick.seq})", tick)
            elif tick.was != outcomes.get(tick.planned):
                what = f"has a tick that was {outcomes.get(tick.planned)}, and went from {tick.was} to {tick.outcome}"
                yield BadTick(what, tick)
            outcomes[tick.planned] = tick.outcome
        for tick in {tick.planned: tick for tick in ticks}.values():
            if tick.outcome == "queued" and tick.planned <= self.case.campaign.healed:
                yield BadTick("has a tick that is still queued at the end", tick)

    def _bad_jobs(self, definition: SeenScheduleChange, ticks: list[TickChange]) -> Iterator[BadTick]:
        for tick in ticks:
            if (tick.outcome == "enqueued") != (tick.job is not None):
                yield BadTick(f"has a tick that is {tick.outcome} with job {tick.job}", tick)
            elif tick.job is not None:
                job = self.case.jobs.get(tick.job)
                if job is None:
                    yield BadTick("has a tick whose job was never enqueued", tick)
                elif job.kind != definition.kind:
                    yield BadTick(f"has a tick whose job is {job.kind}, not {definition.kind}", tick)
                elif self.case.schedules.tick_of_job[tick.job] is not tick:
                    yield BadTick("has a tick with the job of another tick", tick)

    def _bad_overlaps(self, definition: SeenScheduleChange, ticks: list[TickChange]) -> Iterator[BadTick]:
        """Schedules with one job at a time: it ends before the next is enqueued, and no time is skipped without need."""
        previous: TickChange | None = None
        queued: set[float] = set()
        for _, group in groupby((tick for tick in ticks if tick.by is None), key=lambda tick: tick.xact):
            together = sorted(group, key=lambda tick: tick.planned)
            enqueued = [tick for tick in together if tick.outcome == "enqueued"]
            for tick in together:
                waits = tick.outcome in ("skipped", "queued")
                if waits and not self._has_reason(definition, tick, previous, enqueued, len(queued)):
                    yield BadTick(f"has a tick that was {tick.outcome} although no job was live", tick)
                (queued.add if tick.outcome == "queued" else queued.discard)(tick.planned)
            for tick in enqueued:
                if previous is not None and definition.overlap != "allow":
                    yield from self._bad_order(previous, tick)
                previous = tick

    def _has_reason(
        self,
        definition: SeenScheduleChange,
        tick: TickChange,
        previous: TickChange | None,
        enqueued: list[TickChange],
        queued: int,
    ) -> bool:
        if definition.overlap == "allow" or (definition.overlap == "skip" and tick.outcome == "queued"):
            return False
        if definition.overlap == "queue" and tick.outcome == "skipped":
            return queued >= definition.catch_up_limit
        if enqueued or queued:
            return True
        # The previous job may have ended while this tick was being recorded.
        ended = None if previous is None else self._ended.get(previous.job or "")
        return previous is not None and (ended is None or ended >= tick.began - self.case.campaign.late)

    def _bad_order(self, previous: TickChange, tick: TickChange) -> Iterator[BadTick]:
        ended = self._ended.get(previous.job or "")
        if ended is None or ended > tick.at:
            yield BadTick(f"enqueued a job while its job {previous.job} was live", tick)
        if tick.planned < previous.planned:
            yield BadTick("enqueued an earlier time after a later one", tick)


def _bad_catch_up(definition: SeenScheduleChange, times: PlannedTimes, ticks: list[TickChange]) -> Iterator[BadTick]:
    limit = definition.catch_up_limit if definition.catch_up == "all" else 1
    for _, group in groupby((tick for tick in ticks if tick.was is None and tick.by is None), key=lambda tick: tick.xact):
        together = list(group)
        caught_up = [tick for tick in together if tick.outcome != "missed"]
        if len(caught_up) > limit:
            yield BadTick(f"caught up {len(caught_up)} times at once, but the limit is {limit}", caught_up[0])
        for tick in together:
            last = tick.until or tick.planned
            too_late = definition.catch_up == "none" and tick.at - last > GRACE.total_seconds()
            if tick.outcome == "missed" and not too_late and times.count_after(last, tick.at) < limit:
                yield BadTick(f"missed a time that its catch-up ({definition.catch_up}) should not miss", tick)


def _definition(change: SeenScheduleChange) -> tuple[object, ...]:
    return (
        change.kind, change.cron, change.every, change.timezone, change.overlap, change.catch_up, change.catch_up_limit,
        change.retired,
    )  # fmt: skip


class LatePromotion(NamedTuple):
    job: str
    due: float
    promoted: float


class DueJobsPromoted(Rule):
    invariant = Invariant(
        "I22",
        "due jobs are promoted",
        "a scheduled or retrying job becomes pending soon after it is due, even if other work is slow",
    )

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._due: dict[str, float] = {}
        self._late: list[LatePromotion] = []
        self._handovers: list[float] = []

    def on_inserted(self, _job: JobTrace, move: Move) -> None:
        if move.due is not None:
            self._due[move.job] = move.due

    def on_changed(self, job: JobTrace, move: Move) -> None:
        due = self._due.pop(move.job, None)
        if due is not None and move.state == State.PENDING and move.at - due > MAX_DELAY:
            self._add_late(job, due, move.at)
        if move.due is not None:
            self._due[move.job] = move.due

    def on_removed(self, _job: JobTrace, move: Move) -> None:
        self._due.pop(move.job, None)

    def on_term(self, change: TermChange) -> None:
        if change.duty == STAGER and (change.was_holder, change.was_term) != (change.holder, change.term):
            self._handovers.append(change.at)

    def at_end(self) -> None:
        for job_id, due in self._due.items():
            if self.case.campaign.ended - due > MAX_DELAY:
                self._add_late(self.case.jobs[job_id], due, self.case.campaign.ended)
        for late in self._late:
            self._check(late)

    def _add_late(self, job: JobTrace, due: float, promoted: float) -> None:
        if not (job.kind.startswith(REFUSED) and self.case.refusals.overlap(due, promoted)):
            self._late.append(LatePromotion(job.job, due, promoted))

    def _check(self, late: LatePromotion) -> None:
        handed_over = any(late.due - FAILOVER <= at <= late.promoted for at in self._handovers)
        limit = MAX_DELAY_AFTER_HANDOVER if handed_over else MAX_DELAY
        windows = self.case.without_contact if handed_over else self.case.disturbed
        delay = windows.seconds_outside(late.due, late.promoted)
        if delay > limit:
            what = f"was promoted {late.promoted - late.due:.1f} s after it was due, {delay:.1f} s of them without faults"
            self.report(what, job=late.job)
