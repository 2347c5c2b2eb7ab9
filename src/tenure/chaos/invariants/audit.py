"""The audit log of the web server: I16."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from tenure.chaos.invariants.rule import Case, Rule
from tenure.chaos.ledger import AuditLine, ClientCall
from tenure.chaos.verdict import Invariant

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
