"""What a rule is, and what all rules have in common."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import ClassVar

from tenure.chaos.invariants.lookups import CallLookup, ScheduleLookup, Windows, WorkerLookup
from tenure.chaos.invariants.traces import JobTrace, StepTraces
from tenure.chaos.ledger import CampaignRecord, Fault, FinalLink
from tenure.chaos.recorded_changes import LimitChange
from tenure.chaos.verdict import Invariant, Violation

MAX_KEPT = 10_000
"""Violations of one invariant that are searched for the shortest history; further ones are only counted."""


class Findings:
    def __init__(self) -> None:
        self.totals: Counter[str] = Counter()
        self.kept: dict[str, list[Violation]] = {}

    def add(self, violation: Violation) -> None:
        self.totals[violation.number] += 1
        kept = self.kept.setdefault(violation.number, [])
        if len(kept) < MAX_KEPT:
            kept.append(violation)


@dataclass(slots=True, kw_only=True)
class Case:
    """The record of one campaign, as far as it was read, and the violations found in it."""

    campaign: CampaignRecord
    faults: tuple[Fault, ...]
    crashes: Windows
    """When the server was down: what was not durable is lost."""
    outages: Windows
    """When the server was down or its disk was full."""
    locks: Windows
    """When a table that every worker needs was locked, including the time to recover."""
    lost_commits: Windows
    """When commits were answered that a failover may have undone: the standby that was promoted had not received them."""
    disturbed: Windows
    """When faults may have delayed work, including the time to recover from them."""
    without_contact: Windows
    """As `disturbed`, including the time until workers can be condemned again."""
    refusals: Windows
    """When rows of some kinds were refused, including the time until a refused outcome is sent again."""
    calls: CallLookup
    schedules: ScheduleLookup
    workers: WorkerLookup
    limits: tuple[LimitChange, ...]
    links: tuple[FinalLink, ...] = ()
    jobs: dict[str, JobTrace] = field(default_factory=dict)
    steps: dict[str, StepTraces] = field(default_factory=dict)
    """By workflow."""
    findings: Findings = field(default_factory=Findings)


class Rule:
    """Checks one invariant. The checker calls those of these methods that a rule defines:

    for each move, before the job's trace is updated     on_inserted, on_claimed, on_changed, on_removed, on_settled,
                                                         on_history_changed, on_history_deleted, on_reinserted,
                                                         on_reinsert_undone (job, move)
    for each line that a handler wrote                   on_handler_line (job or None, line)
    for each job at the end of the campaign              on_final (job or None, final)
    for each change of a leader's row                    on_term (change)
    for each row that was written together with a job    on_effect (effect)
    for each entry of the audit log                      on_audit (entry)
    for each change of a step, before its trace is       on_step (job or None, change)
    updated
    for each line about the value of a step              on_value (job or None, line)
    once, after everything was read                      at_end ()
    """

    invariant: ClassVar[Invariant]

    def __init__(self, case: Case) -> None:
        self.case = case

    def report(
        self,
        what: str,
        *,
        job: str | None = None,
        n: int | None = None,
        duty: str | None = None,
        schedule: str | None = None,
        planned: float | None = None,
    ) -> None:
        """Adds a violation. `what` continues a sentence that begins with the job, request, duty or schedule."""
        self.case.findings.add(Violation(self.invariant.number, what, job, n, duty, schedule, planned))
