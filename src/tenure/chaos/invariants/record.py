"""The record itself: I0 it is complete, I23 history was repaired at the end."""

from __future__ import annotations

from collections import Counter

from tenure.chaos.invariants.rule import Case, Rule
from tenure.chaos.invariants.traces import JobTrace
from tenure.chaos.ledger import FinalJob, HandlerLine, Move
from tenure.chaos.verdict import Invariant
from tenure.model.states import State

ENOUGH_TRIES = 20
"""A kind of fault that was tried this often and never done was not part of this campaign, although its plan contains it."""


class RecordIsComplete(Rule):
    """A record with gaps proves nothing: all other rules rely on this one."""

    invariant = Invariant("I0", "the record is complete", "everything was recorded, and the record agrees with itself")

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._seq = -1
        self._lines = 0

    def on_inserted(self, _job: JobTrace, move: Move) -> None:
        self._check_sequence(move)

    def on_reinserted(self, _job: JobTrace, move: Move) -> None:
        self._check_sequence(move)

    def on_reinsert_undone(self, _job: JobTrace, move: Move) -> None:
        self._check_sequence(move)

    def on_settled(self, job: JobTrace, move: Move) -> None:
        self._check_sequence(move)
        if not job.lines:
            self.report("entered history without ever having been in jobs", job=move.job)

    def on_claimed(self, job: JobTrace, move: Move) -> None:
        self._check_previous(job, move, "jobs")

    on_changed = on_removed = on_claimed

    def on_history_deleted(self, job: JobTrace, move: Move) -> None:
        self._check_previous(job, move, "history")

    on_history_changed = on_history_deleted

    def on_handler_line(self, job: JobTrace | None, line: HandlerLine) -> None:
        self._lines += 1
        if job is None and not self.case.lost_commits.overlap(line.at - self.case.campaign.longest, line.at):
            self.report(f"was run under fence {line.fence}, but no change of its row was recorded", job=line.job)

    def on_final(self, job: JobTrace | None, final: FinalJob) -> None:
        if job is None:
            self.report(f"exists at the end ({final.state}), but no change of its row was recorded", job=final.job)
        elif (job.state, job.fence, job.claim) != (final.state, final.fence, final.claim):
            self.report(
                f"is {_row(final.state, final.fence, final.claim)} at the end, but was last recorded as "
                f"{_row(job.state, job.fence, job.claim)}",
                job=final.job,
            )

    def at_end(self) -> None:
        self._check_calls()
        self._check_faults()
        if not self.case.jobs or not self._lines:
            self.report(f"has {len(self.case.jobs)} jobs and {self._lines} handler lines: that proves nothing")
        for job in self.case.jobs.values():
            if job.relation is not None and not job.in_final:
                self.report(f"was last recorded as {job.state}, but does not exist at the end", job=job.job)
            if job.outcome == State.COMPLETED:
                claim = job.claim_with(job.fence)
                if claim is None or not claim.started_at:
                    self.report(f"completed under fence {job.fence}, but no handler recorded its start", job=job.job)

    def _check_sequence(self, move: Move) -> None:
        if move.seq <= self._seq:
            self.report(f"has change {move.seq} after change {self._seq}", job=move.job)
        self._seq = move.seq

    def _check_previous(self, job: JobTrace, move: Move, relation: str) -> None:
        self._check_sequence(move)
        if job.relation != relation or job.state != move.was or job.claim != move.was_claim:
            was = "it had no row" if job.relation is None else f"it was {job.state} in {job.relation}"
            what = f"was changed as {move.was} in {relation} (change {move.seq}), but {was}: a change is missing"
            self.report(what, job=move.job)

    def _check_calls(self) -> None:
        for what in self.case.calls.malformed:
            self.report(f"has a call that cannot be read: {what}")
        for n in self.case.calls.repeated_numbers:
            self.report("was made twice, but each number is used once", n=n)

    def _check_faults(self) -> None:
        tried, done = Counter[str](), Counter[str]()
        for fault in self.case.faults:
            tried[fault.kind] += 1
            done[fault.kind] += fault.done
            if fault.ended < fault.began:
                self.report(f"has a fault that ended before it began: {fault.kind} of {fault.target!r}")
            if fault.ended > self.case.campaign.healed:
                self.report(f"has a fault that was active after the faults were over: {fault.kind} of {fault.target!r}")
        for kind, times in tried.items():
            if times >= ENOUGH_TRIES and not done[kind]:
                self.report(f"tried the fault {kind} {times} times, and it was never done")


def _row(state: str | None, fence: int, claim: str | None) -> str:
    return f"{state}, fence {fence}, {f'claim {claim}' if claim else 'no claim'}"


class HistoryRepaired(Rule):
    invariant = Invariant(
        "I23",
        "history is repaired",
        "once the faults are over, today has its partition of history, and no job that finished today is in the default one",
    )

    def at_end(self) -> None:
        if not self.case.campaign.repaired:
            self.report("ended without a partition of history for today, or with jobs of today in the default partition")
