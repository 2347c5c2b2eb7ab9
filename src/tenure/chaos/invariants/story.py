"""All that the ledger has on one job, offer, duty or planned time, in the order of time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from tenure.chaos.invariants import words
from tenure.chaos.ledger import Call, Course, Fault, Ledger, Plan, Tick
from tenure.chaos.verdict import History, Line, Violation

MOST_FAULTS = 40
"""Shown of one life; a long one meets hundreds."""

MOST_TERMS = 40
"""Shown of one duty, or of all times of a schedule: the last changes."""


class Story:
    def __init__(self, about: Violation, n: int | None) -> None:
        self.subject = about.subject
        self.job = about.job
        self.n = about.n if n is None else n
        self.duty = about.duty
        self.schedule, self.planned = about.schedule, about.planned
        self._told: list[tuple[float, str]] = []
        self._at_the_end: list[str] = []

    def tell(self, at: float, what: str, job: str | None = None) -> None:
        self._told.append((at, self._whose(job) + what))

    def conclude(self, what: str, job: str | None = None) -> None:
        self._at_the_end.append(self._whose(job) + what)

    def history(self, course: Course, faults: Iterable[Fault]) -> History:
        many = self.duty is not None or (self.schedule is not None and self.planned is None)
        told = self._told[-MOST_TERMS:] if many else self._told
        told = sorted([*told, *self._faults(told, faults)], key=lambda line: line[0])
        lines = [Line(at - course.began, what) for at, what in told]
        return History(self.subject, (*lines, *(Line(None, what) for what in self._at_the_end)))

    def is_about(self, line: Plan | Tick) -> bool:
        if self.planned is None:
            return True
        if isinstance(line, Tick):
            return line.planned <= self.planned <= (line.until or line.planned) or (self.job is not None and line.job == self.job)
        return line.was_since is None or line.since is None or line.was_since < self.planned <= line.since

    def _whose(self, job: str | None) -> str:
        """Other jobs of the same offer belong to the story as well."""
        return "" if job is None or job == self.job else f"job {job}: "

    @staticmethod
    def _faults(told: list[tuple[float, str]], faults: Iterable[Fault]) -> Iterator[tuple[float, str]]:
        if not told:
            return
        begin, end = min(told)[0], max(told)[0]
        met = [fault for fault in faults if fault.began <= end and fault.ended >= begin]
        yield from ((fault.began, words.of_fault(fault)) for fault in met[:MOST_FAULTS])
        if len(met) > MOST_FAULTS:
            yield end, f"and {len(met) - MOST_FAULTS} more faults"


class Readers:
    """Who wants to hear of what."""

    def __init__(self, stories: Iterable[Story]) -> None:
        self._by_job: dict[str, Story] = {}
        self._by_n: dict[int, list[Story]] = {}
        self._by_duty: dict[str, Story] = {}
        self._by_schedule: dict[str, list[Story]] = {}
        for story in stories:
            if story.job is not None:
                self._by_job[story.job] = story
            if story.n is not None:
                self._by_n.setdefault(story.n, []).append(story)
            if story.duty is not None:
                self._by_duty[story.duty] = story
            if story.schedule is not None:
                self._by_schedule.setdefault(story.schedule, []).append(story)

    def of(self, job: str | None, n: int | None = None) -> Iterator[Story]:
        story = None if job is None else self._by_job.get(job)
        if story is not None:
            yield story
        if n is not None:
            yield from (other for other in self._by_n.get(n, ()) if other is not story)

    def of_call(self, call: Call) -> set[Story]:
        found = {story for offer in call.offers for story in self.of(None, offer.n)}
        for job in (call.job, call.told if isinstance(call.told, str) else None, *call.ids):
            found.update(self.of(job))
        return found

    def of_schedule(self, name: str, line: Plan | Tick) -> Iterator[Story]:
        yield from (story for story in self._by_schedule.get(name, ()) if story.is_about(line))

    def of_duty(self, duty: str) -> Story | None:
        return self._by_duty.get(duty)


def tell(ledger: Ledger, violations: Iterable[Violation], offer_of: Callable[[str], int | None]) -> dict[str, History]:
    """By subject. Reads the ledger once more; `offer_of` gives the number of a job's offer."""
    stories = {about.subject: Story(about, offer_of(about.job) if about.job else None) for about in violations}
    if not stories:
        return {}
    readers = Readers(stories.values())
    _read_moments(ledger, readers)
    _read_schedules(ledger, readers)
    _read_end(ledger, readers)
    course, faults = ledger.course(), list(ledger.faults())
    return {subject: story.history(course, faults) for subject, story in stories.items()}


def _read_moments(ledger: Ledger, readers: Readers) -> None:
    for call in ledger.calls():
        for story in readers.of_call(call):
            story.tell(call.began, words.of_call(call, story.job, story.n))
    for move in ledger.moves():
        for story in readers.of(move.job, move.n):
            story.tell(move.at, words.of_move(move), move.job)
    for run in ledger.runs():
        for story in readers.of(run.job, run.n):
            story.tell(run.at, words.of_run(run), run.job)
    for term in ledger.terms():
        duty = readers.of_duty(term.duty)
        if duty is not None:
            duty.tell(term.at, words.of_term(term))


def _read_schedules(ledger: Ledger, readers: Readers) -> None:
    for plan in ledger.plans():
        for story in readers.of_schedule(plan.name, plan):
            story.tell(plan.at, words.of_plan(plan))
    for tick in ledger.ticks():
        for story in readers.of_schedule(tick.schedule, tick):
            story.tell(tick.at, words.of_tick(tick))


def _read_end(ledger: Ledger, readers: Readers) -> None:
    for final in ledger.final():
        for story in readers.of(final.job, final.n):
            story.conclude(words.of_final(final), final.job)
    for effect in ledger.effects():
        for story in readers.of(effect.job, effect.n):
            story.conclude(words.of_effect(effect), effect.job)
