"""Workflows as a whole: I25 no wake-up is lost, I26 what failed is undone."""

from __future__ import annotations

from typing import NamedTuple

from tenure.chaos.invariants.kinds import WORKFLOW
from tenure.chaos.invariants.rule import Case, Rule
from tenure.chaos.invariants.schedules import FAILOVER, MAX_DELAY, MAX_DELAY_AFTER_HANDOVER
from tenure.chaos.invariants.step_traces import StepTraces
from tenure.chaos.invariants.traces import JobTrace
from tenure.chaos.ledger import Move, StepChange, TermChange, ValueLine
from tenure.chaos.verdict import Invariant
from tenure.model.states import State

RESOLVER = "resolver"

UNDO = "(undo) "
"""Begins the name of a step that undoes what `on_rollback` registered."""


class Wait:
    """A time for which a workflow waited without a slot, and the latest time by which it had a reason to continue."""

    __slots__ = ("began", "child_ended", "ended", "event_sent", "fence", "woken")

    def __init__(self, began: float, fence: int) -> None:
        self.began = began
        self.fence = fence
        self.ended: float | None = None
        self.woken = False
        """It ended because the workflow became pending."""
        self.event_sent: float | None = None
        self.child_ended: float | None = None
        """When the last of its children had ended. Infinity: one has not."""

    @property
    def reason(self) -> float:
        reasons = [at for at in (self.event_sent, self.child_ended) if at is not None]
        return max(self.began, min(reasons, default=float("inf")))


class LateWakeUp(NamedTuple):
    job: str
    due: float
    woken: float


class NoWakeUpLost(Rule):
    """The ends of sleeps and timeouts are checked by I22: to be woken by them is to be promoted."""

    invariant = Invariant(
        "I25",
        "no wake-up is lost",
        "a waiting workflow continues soon after its event was sent or its children have ended, and receives an event that "
        "was sent in time",
    )

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._waits: dict[str, list[Wait]] = {}
        self._handovers: list[float] = []

    def on_changed(self, _job: JobTrace, move: Move) -> None:
        if move.was == move.state:
            return
        if move.was == State.WAITING:
            self._end(move, woken=move.state == State.PENDING)
        elif move.state == State.WAITING:
            self._waits.setdefault(move.job, []).append(Wait(move.at, move.fence))

    def on_removed(self, _job: JobTrace, move: Move) -> None:
        if move.was == State.WAITING:
            self._end(move, woken=False)

    def on_term(self, change: TermChange) -> None:
        if change.duty == RESOLVER and (change.was_holder, change.was_term) != (change.holder, change.term):
            self._handovers.append(change.at)

    def on_step(self, job: JobTrace | None, change: StepChange) -> None:
        if change.what == "wait" and job is not None:
            self._add_event(job, change)
        elif change.what == "call" and change.state == "open":
            wait = self._wait_of(change)
            if wait is not None and isinstance(change.output, dict):
                wait.child_ended = max(wait.child_ended or 0.0, self._ended_at(str(change.output.get("child"))))

    def at_end(self) -> None:
        for job_id, waits in self._waits.items():
            for wait in waits:
                ended = self.case.campaign.ended if wait.ended is None else wait.ended
                if (wait.woken or wait.ended is None) and ended - wait.reason > MAX_DELAY:
                    self._check(LateWakeUp(job_id, wait.reason, ended))

    def _end(self, move: Move, *, woken: bool) -> None:
        waits = self._waits.get(move.job)
        if waits:
            waits[-1].ended, waits[-1].woken = move.at, woken

    def _wait_of(self, change: StepChange) -> Wait | None:
        return next((wait for wait in reversed(self._waits.get(change.job, [])) if wait.fence == change.fence), None)

    def _add_event(self, job: JobTrace, change: StepChange) -> None:
        sent = self.case.calls.sent.get(str(job.n))
        if sent is None or self.case.lost_commits.overlap(sent.began, sent.ended):
            return
        if change.state == "open":
            wait = self._wait_of(change)
            if wait is not None:
                wait.event_sent = sent.ended
        elif change.state == "failed":
            claim = job.claim_with(change.fence)
            if claim is not None and sent.ended < claim.at:
                early = claim.at - sent.ended
                self.report(f"was claimed {early:.3f} s after its event was sent, but recorded that no event came", job=job.job)

    def _ended_at(self, child: str) -> float:
        """When the child became what it is: finished, or a dead letter."""
        trace = self.case.jobs.get(child)
        ended = trace is not None and (trace.outcome is not None or trace.state == State.DEAD_LETTER)
        return trace.changed_at if trace is not None and ended else float("inf")

    def _check(self, late: LateWakeUp) -> None:
        handed_over = any(late.due - FAILOVER <= at <= late.woken for at in self._handovers)
        limit = MAX_DELAY_AFTER_HANDOVER if handed_over else MAX_DELAY
        windows = self.case.without_contact if handed_over else self.case.disturbed
        delay = windows.seconds_outside(late.due, late.woken)
        if delay > limit:
            what = f"was woken {late.woken - late.due:.1f} s after it could continue, {delay:.1f} s of them without faults"
            self.report(what, job=late.job)


class FailedWorkflowsUndone(Rule):
    invariant = Invariant(
        "I26",
        "failed workflows are undone",
        "a workflow that failed or was canceled has undone all that it had registered, once and the last one first; one that "
        "completed has undone nothing",
    )

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._ran: dict[str, set[str]] = {}
        """By workflow: what it did to undo, recorded or not."""

    def on_value(self, job: JobTrace | None, line: ValueLine) -> None:
        if job is not None and line.what == "ran" and line.step.startswith(UNDO):
            self._ran.setdefault(job.job, set()).add(line.step)

    def at_end(self) -> None:
        for job in self.case.jobs.values():
            if job.kind.startswith(WORKFLOW) and job.outcome is not None:
                self._check(job, self.case.steps.get(job.job, {}))

    def _check(self, job: JobTrace, steps: StepTraces) -> None:
        registered = _names(steps, "on_rollback")
        undone = _names(steps, "undo")
        expected = [] if job.outcome == State.COMPLETED else [f"{UNDO}{name}" for name in reversed(registered)]
        if undone != expected and not self._record_was_lost(job, undone, expected):
            self.report(f"is {job.outcome}, and has undone {undone} instead of {expected}", job=job.job)

    def _record_was_lost(self, job: JobTrace, undone: list[str], expected: list[str]) -> bool:
        """It did undo all of it; a failover lost the end of the record, and the run that had continued was settled."""
        last = job.claims[-1] if job.claims else None
        if last is None or not self.case.lost_commits.overlap(last.at, last.until):
            return False
        return undone == expected[: len(undone)] and set(expected) <= self._ran.get(job.job, set())


def _names(steps: StepTraces, what: str) -> list[str]:
    """Of the steps of this sort that are done, in the order in which they were recorded."""
    found = [(step.number, name) for name, step in steps.items() if step.what == what and step.done]
    return [name for _, name in sorted(found)]
