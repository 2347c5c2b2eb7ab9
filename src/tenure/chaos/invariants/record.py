"""What is recorded: I0 the record of the campaign is complete, I16 the audit log of the web server, I23 history was repaired."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import NamedTuple

from tenure.chaos.invariants.rule import Case, Rule
from tenure.chaos.invariants.traces import JobTrace
from tenure.chaos.ledger import AuditLine, ClientCall, FinalJob, HandlerLine
from tenure.chaos.recorded_changes import Move
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


# The audit log

CLOCKS_APART = 1.0
"""Seconds by which the clocks of a client and of PostgreSQL may differ."""

BY_CLIENTS = "campaign-client-"
"""How the names of the clients' tokens begin. Other entries are of people who look at the campaign."""


class AuditedAction(NamedTuple):
    """Who did what to which job."""

    actor: str
    action: str
    subject: str | None


class EveryChangeAudited(Rule):
    invariant = Invariant(
        "I16",
        "every change is audited",
        "each change by the web API is recorded with who and what before it is made, and nothing else is recorded",
    )

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._requested: dict[str, AuditLine] = {}
        """By the id of the request."""
        self._finished: dict[str, AuditLine] = {}
        self._by_action: defaultdict[AuditedAction, list[AuditLine]] = defaultdict(list)

    def on_audit(self, entry: AuditLine) -> None:
        if not entry.actor.startswith(BY_CLIENTS):
            return
        if entry.phase == "finished":
            self._finished[entry.request] = entry
            if entry.request not in self._requested:
                self.report(f"has a finished {entry.action} in the audit log that was not recorded before", job=entry.subject)
            return
        self._requested[entry.request] = entry
        self._by_action[_action_of(entry)].append(entry)

    def at_end(self) -> None:
        called: defaultdict[AuditedAction, list[ClientCall]] = defaultdict(list)
        for calls in self.case.calls.by_job.values():
            for call in calls:
                if call.actor:
                    called[AuditedAction(call.actor, f"{call.verb}_job", call.job)].append(call)
                    self._check_call(call)
        for entry in self._requested.values():
            if not any(call.began <= entry.at + CLOCKS_APART for call in called[_action_of(entry)]):
                self.report(f"has {entry.action} by {entry.actor} in the audit log, who did not ask for it", job=entry.subject)

    def _check_call(self, call: ClientCall) -> None:
        """Refused and unanswered calls may have been recorded or not: they may not have reached the server."""
        if call.answer != "ok" or self.case.lost_commits.overlap(call.began, call.ended):
            return
        action = AuditedAction(call.actor, f"{call.verb}_job", call.job)
        span = (call.began - CLOCKS_APART, call.ended + CLOCKS_APART)
        entries = [entry for entry in self._by_action[action] if span[0] <= entry.at <= span[1]]
        if not entries:
            self.report(
                f"was changed ({call.verb}) by {call.actor} through the web API without an entry in the audit log", job=call.job
            )
        elif not any(self._succeeded(entry) for entry in entries):
            self.report(f"was changed ({call.verb}) by {call.actor}, but the audit log says that it was refused", job=call.job)

    def _succeeded(self, entry: AuditLine) -> bool:
        """Also when it is not recorded how it ended: the server may have been killed."""
        finished = self._finished.get(entry.request)
        return finished is None or (finished.status or 0) < 300


def _action_of(entry: AuditLine) -> AuditedAction:
    return AuditedAction(entry.actor, entry.action, entry.subject)
