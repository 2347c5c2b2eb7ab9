"""Steps of workflows: I12 each is recorded once, and all runs see what is recorded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tenure.chaos.invariants.kinds import CHILD, WORKFLOW
from tenure.chaos.invariants.rule import Case, Rule
from tenure.chaos.invariants.step_traces import ENDED, STATUS, WITH_VALUE, StepTrace, StepTraces
from tenure.chaos.invariants.traces import ClaimTrace, JobTrace
from tenure.chaos.ledger import EffectRow, FinalJob, StepChange, ValueLine
from tenure.chaos.verdict import Invariant
from tenure.model.states import State

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
            if change.was != "failed" and not job.gone and change.what != STATUS:
                self.report(f"has lost step {change.step!r}, which was {change.was}", job=job.job)
            return
        if before is not None and before.state in ENDED:
            self.report(f"has recorded step {change.step!r} again: {before.state}, then {change.state}", job=job.job)
        self._check_claim(job, change, job.claim_with(change.fence))
        if change.what in CHILD_STEPS and isinstance(change.output, dict):
            self._check_child(job, change, change.output)

    def _check_claim(self, job: JobTrace, change: StepChange, claim: ClaimTrace | None) -> None:
        if claim is None:
            self.report(f"has recorded step {change.step!r} under fence {change.fence}, which no worker claimed", job=job.job)
        elif change.state == "done" and change.what in WITH_VALUE and not claim.at - CLOCK <= change.at <= claim.until + CLOCK:
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
        if step is not None and step.state in ENDED and line.fence > step.fence:
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
