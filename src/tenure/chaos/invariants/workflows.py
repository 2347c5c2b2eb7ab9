"""Chains and workflows: I12 each step is recorded once, I24 a chain has one end, I25 no wake-up is lost, I26 what failed is
undone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from tenure.chaos.invariants.duties import FAILOVER, MAX_DELAY, MAX_DELAY_AFTER_HANDOVER
from tenure.chaos.invariants.rule import Case, Rule
from tenure.chaos.invariants.traces import (
    CHAIN_STARTS,
    CHILD,
    ENDED_STEP_STATES,
    STATUS_STEP,
    STEPS_WITH_VALUE,
    WORKFLOW,
    ClaimTrace,
    JobTrace,
    StepTrace,
    StepTraces,
)
from tenure.chaos.ledger import EffectRow, FinalJob, FinalLink, ValueLine
from tenure.chaos.recorded_changes import Move, StepChange, TermChange
from tenure.chaos.verdict import Invariant
from tenure.model.states import State

# Chains


class ChainsEndOnce(Rule):
    invariant = Invariant(
        "I24",
        "a chain has one end",
        "each link but the last was continued by exactly one other, and no job waits for a chain that has ended",
    )

    def at_end(self) -> None:
        by_id = {link.job: link for link in self.case.links}
        chains: dict[str, list[FinalLink]] = defaultdict(list)
        continued: dict[str, str] = {}
        for link in self.case.links:
            chains[link.chain].append(link)
            if link.next is not None:
                if link.next not in by_id:
                    self.report(f"was continued by {link.next}, which does not exist", job=link.job)
                if link.next in continued:
                    self.report(f"was continued by {link.next}, and so was {continued[link.next]}", job=link.job)
                continued[link.next] = link.job
            if link.missing is not None:
                self.report(f"still waits for {link.missing} chains", job=link.job)
        for chain, links in chains.items():
            self._check_chain(chain, links, continued)

    def _check_chain(self, chain: str, links: list[FinalLink], continued: dict[str, str]) -> None:
        tails = [link.job for link in links if link.next is None]
        if len(tails) > 1:
            self.report(f"has {len(tails)} ends: {', '.join(tails)}", job=chain)
        for link in links:
            # A first link may have been deleted by a client, and only first links are known to clients.
            if link.job != chain and link.job not in continued and link.parent not in self.case.calls.deleted:
                self.report("is a link that no other was continued by", job=link.job)
            if link.kind == CHAIN_STARTS and link.job != chain:
                self.report(f"started chain {chain}, which has another id", job=link.job)


# Steps

CLOCK = 0.1
"""Seconds by which the times of two changes may seem to be in another order than the changes."""

IN_ORDER = "workflow_sequence"
"""A workflow whose steps follow each other: its output has the value of the one that was recorded last."""

CHILD_STEPS = frozenset({"call", "start"})

MADE_IN_RUNS = frozenset({"step", "transaction"})
"""The steps that a workflow counts in its output."""


class StepsRecordedOnce(Rule):
    invariant = Invariant(
        "I12",
        "steps are recorded once",
        "a step is recorded once, by the current claim, after the steps it needs; all runs see what is recorded; each child and "
        "each row of a step's transaction belongs to one recorded step",
    )

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._seen: dict[tuple[str, str], str] = {}
        """By workflow and name: values that are not steps, as the first run saw them."""
        self._children: dict[str, str] = {}
        """By child: the workflow that has recorded it."""
        self._outputs: dict[str, Any] = {}
        """Of children and completed workflows, at the end."""
        self._bookings: dict[str, list[int | None]] = {}
        """By workflow: the fences under which steps wrote rows in their transactions."""

    def on_final(self, _job: JobTrace | None, final: FinalJob) -> None:
        if final.kind.startswith(WORKFLOW) and final.state == State.COMPLETED:
            self._outputs[final.job] = final.output

    def on_effect(self, effect: EffectRow) -> None:
        if effect.relation == "bookings" and effect.job is not None:
            self._bookings.setdefault(effect.job, []).append(effect.fence)

    # Changes of rows

    def on_step(self, job: JobTrace | None, change: StepChange) -> None:
        if job is None:
            self.report(f"has recorded step {change.step!r}, but no change of its row was recorded", job=change.job)
            return
        before = self.case.steps[change.job].get(change.step)
        if change.state is None:
            if change.was != "failed" and not job.gone and change.what != STATUS_STEP:
                self.report(f"has lost step {change.step!r}, which was {change.was}", job=job.job)
            return
        if before is not None and before.state in ENDED_STEP_STATES:
            self.report(f"has recorded step {change.step!r} again: {before.state}, then {change.state}", job=job.job)
        self._check_claim(job, change, job.claim_with(change.fence))
        if change.what in CHILD_STEPS and isinstance(change.output, dict):
            self._check_child(job, change, change.output)

    def _check_claim(self, job: JobTrace, change: StepChange, claim: ClaimTrace | None) -> None:
        if claim is None:
            self.report(f"has recorded step {change.step!r} under fence {change.fence}, which no worker claimed", job=job.job)
        elif (
            change.state == "done"
            and change.what in STEPS_WITH_VALUE
            and not claim.at - CLOCK <= change.at <= claim.until + CLOCK
        ):
            # Other steps may be written by the statement that ends the run.
            held = f"from {claim.at:.3f} to {claim.until:.3f}"
            self.report(
                f"has recorded step {change.step!r} at {change.at:.3f} under fence {change.fence}, which was held {held}",
                job=job.job,
            )

    def _check_child(self, job: JobTrace, change: StepChange, output: dict[str, Any]) -> None:
        child = str(output.get("child"))
        parent = self._children.setdefault(child, job.job)
        if parent != job.job:
            self.report(f"has recorded child {child}, which belongs to job {parent}", job=job.job)
        if change.what != "call" or change.state != "done":
            return
        recorded, real = output.get("state"), self.case.jobs.get(child)
        ended = None if real is None else real.outcome or real.state
        if recorded != ended or (recorded == State.COMPLETED and output.get("output") != self._outputs.get(child)):
            self.report(f"has recorded child {child} as {recorded}, {output.get('output')}, but it is {ended}", job=job.job)

    # What steps made and workflows saw

    def on_value(self, job: JobTrace | None, line: ValueLine) -> None:
        claim = None if job is None else job.claim_with(line.fence)
        if claim is None or claim.worker != line.worker:
            return  # I5 checks runs whose claim was undone
        steps = self.case.steps.get(line.job, {})
        step = steps.get(line.step)
        if line.what == "ran" and step is not None and step.done and step.value == line.value:
            step.made = True
        if self.case.lost_commits.overlap(line.at - self.case.campaign.longest, line.at):
            return  # what it had recorded, or has seen, may be lost
        wrong = self._bad_run(line, steps, step) if line.what == "ran" else self._bad_sight(line, step)
        for what in wrong:
            self.report(f"{what} (fence {line.fence})", job=line.job)

    def _bad_run(self, line: ValueLine, steps: StepTraces, step: StepTrace | None) -> Iterator[str]:
        if line.needs:
            needed = steps.get(line.needs)
            if needed is None or not needed.done:
                yield f"ran step {line.step!r} before {line.needs!r}, which it needs, was recorded"
            elif needed.value != line.given:
                yield f"ran step {line.step!r} with {line.given!r} of {line.needs!r}, which has recorded {needed.value!r}"
        if step is not None and step.state in ENDED_STEP_STATES and line.fence > step.fence:
            yield f"ran step {line.step!r} again, which was recorded under fence {step.fence}"

    def _bad_sight(self, line: ValueLine, step: StepTrace | None) -> Iterator[str]:
        if step is not None:
            if step.value != line.value:
                yield f"saw {line.value!r} of {line.step!r}, which has recorded {step.value!r}"
            return
        first = self._seen.setdefault((line.job, line.step), line.value)
        if first != line.value:
            yield f"saw {line.value!r} of {line.step!r}, but another run saw {first!r}"

    # The end

    def at_end(self) -> None:
        for job in self.case.jobs.values():
            if job.kind == CHILD:
                if job.job not in self._children:
                    self.report("was started by no recorded step of a workflow", job=job.job)
            elif job.kind.startswith(WORKFLOW):
                for what in self._bad_end(job, self.case.steps.get(job.job, {})):
                    self.report(what, job=job.job)

    def _bad_end(self, job: JobTrace, steps: StepTraces) -> Iterator[str]:
        for name, step in steps.items():
            if step.has_value and not step.made:
                yield f"has recorded {step.value!r} for {name!r} under fence {step.fence}, which that run of it did not make"
        booked = sorted(fence or 0 for fence in self._bookings.get(job.job, ()))
        expected = sorted(step.fence for step in steps.values() if step.done and step.what == "transaction")
        if booked != expected:
            yield f"has rows of steps with the fences {booked}, but recorded these steps under the fences {expected}"
        output = self._outputs.get(job.job)
        if isinstance(output, dict):
            values = [step.value for step in steps.values() if step.done and step.what in MADE_IN_RUNS]
            if self._lost_the_last(job, output, values):
                return
            if len(values) != output.get("steps") or output.get("last") not in values:
                ending = f"completed with {output.get('steps')} steps, the last one {output.get('last')!r}"
                yield f"{ending}, but {len(values)} are recorded"

    def _lost_the_last(self, job: JobTrace, output: dict[str, Any], values: Sequence[str | None]) -> bool:
        """A run that completes right after a failover may have recorded steps that the new primary does not have: the last ones.
        If one before them is lost, the run cannot record another one, and the next run begins with what is recorded."""
        if not job.claims or len(values) > output.get("steps", 0):
            return False
        *_, last = job.claims
        in_order = job.kind == IN_ORDER
        return self.case.lost_commits.overlap(last.at, last.until) and not (in_order and output.get("last") in values)


# Workflows as a whole

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
