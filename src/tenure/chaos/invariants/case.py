"""What all rules look at, and what a rule is."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import ClassVar

from tenure.chaos.invariants.asked import Asked
from tenure.chaos.invariants.lives import Life
from tenure.chaos.invariants.planned import Planned
from tenure.chaos.invariants.windows import Windows
from tenure.chaos.invariants.workers import Workers
from tenure.chaos.ledger import Course, Fault, LimitChange
from tenure.chaos.verdict import Invariant, Violation

MOST_KEPT = 10_000
"""Violations of one invariant among which the shortest history is looked for; the others are only counted."""


class Findings:
    def __init__(self) -> None:
        self.totals: Counter[str] = Counter()
        self.kept: dict[str, list[Violation]] = {}

    def add(self, violation: Violation) -> None:
        self.totals[violation.number] += 1
        kept = self.kept.setdefault(violation.number, [])
        if len(kept) < MOST_KEPT:
            kept.append(violation)


@dataclass(slots=True, kw_only=True)
class Case:
    course: Course
    faults: tuple[Fault, ...]
    crashes: Windows
    """When the server was down: what it had not made durable is gone."""
    outages: Windows
    """When the server could not serve as it should."""
    locks: Windows
    """When a table that every worker needs was locked, with the time that it takes to recover."""
    lost: Windows
    """When commits were answered that a failover may have taken back: the standby that led afterwards had not received them."""
    unrest: Windows
    """When faults may have held up work, with the time that it takes to recover from them."""
    contact: Windows
    """As `unrest`, with the time that it takes until workers can be condemned again."""
    refusals: Windows
    """When rows of some kinds were refused, with the time until a refused outcome is sent again."""
    asked: Asked
    planned: Planned
    workers: Workers
    limits: tuple[LimitChange, ...]
    lives: dict[str, Life] = field(default_factory=dict)
    findings: Findings = field(default_factory=Findings)


class Rule:
    """Checks one invariant. A rule is told what it has a method for:

    a step of a job, before its life takes it   born granted moved left settled amended erased reborn unborn (life, move)
    a line of a handler                         ran(life or None, run)
    a job as it stood at the end                stood(life or None, final)
    a change of a leader's row                  term(term)
    a row that was written with a job           effect(effect)
    that there is no more                       end()
    """

    invariant: ClassVar[Invariant]

    def __init__(self, case: Case) -> None:
        self.case = case

    def breach(
        self,
        what: str,
        *,
        job: str | None = None,
        n: int | None = None,
        duty: str | None = None,
        schedule: str | None = None,
        planned: float | None = None,
    ) -> None:
        self.case.findings.add(Violation(self.invariant.number, what, job, n, duty, schedule, planned))
