"""Judges a recorded campaign: reads the ledger once, lets every rule look at every line, and says which promises held.

Needs nothing but the ledger: no database, no clock. A record that has gaps is itself a violation (I0), so that nothing can
pass by not having been seen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from tenure.chaos.invariants import INVARIANTS, RULES
from tenure.chaos.invariants.asked import Asked
from tenure.chaos.invariants.case import Case, Rule
from tenure.chaos.invariants.lives import STEPS, Life
from tenure.chaos.invariants.planned import Planned
from tenure.chaos.invariants.story import tell
from tenure.chaos.invariants.windows import (
    CONTACT,
    CRASHES,
    FAILOVERS,
    LOCKS,
    OUTAGES,
    PARKED,
    REFUSALS,
    at_work,
    unrest,
    unrest_of,
)
from tenure.chaos.invariants.workers import Workers
from tenure.chaos.ledger import Ledger
from tenure.chaos.verdict import Counts, Verdict, Violation

MOST_SHOWN = 20
"""Violations of one invariant that a verdict names."""


def check(ledger: Ledger) -> Verdict:
    case = _open(ledger)
    rules = [rule(case) for rule in RULES]
    moves = _read_moves(ledger, case, rules)
    runs = _read_runs(ledger, case, rules)
    _read_rest(ledger, case, rules)
    for end in _told(rules, "end"):
        end()
    return _conclude(ledger, case, moves, runs)


def _open(ledger: Ledger) -> Case:
    faults = tuple(ledger.faults())
    asked = Asked()
    for call in ledger.calls():
        asked.hear(call)
    return Case(
        course=ledger.course(),
        faults=faults,
        crashes=at_work(faults, CRASHES),
        outages=at_work(faults, OUTAGES),
        locks=unrest_of(faults, LOCKS),
        lost=at_work(faults, FAILOVERS),
        unrest=unrest(faults),
        contact=unrest(faults, at_least=CONTACT),
        refusals=at_work(faults, REFUSALS, after=PARKED),
        asked=asked,
        planned=Planned(ledger.plans(), ledger.ticks()),
        workers=Workers(ledger.workers(), faults),
        limits=tuple(ledger.limits()),
    )


def _told(rules: Sequence[Rule], of: str) -> list[Callable[..., None]]:
    """Those who want to hear of it."""
    return [getattr(rule, of) for rule in rules if hasattr(rule, of)]


def _read_moves(ledger: Ledger, case: Case, rules: Sequence[Rule]) -> int:
    lives, number = case.lives, 0
    told = {step: _told(rules, step) for step in STEPS}
    for number, move in enumerate(ledger.moves(), 1):  # noqa: B007 - how many there were
        life = lives.get(move.job)
        if life is None:
            life = lives[move.job] = Life(move.job)
        step = life.step(move)
        for look in told[step]:
            look(life, move)
        life.take(step, move)
    return number


def _read_runs(ledger: Ledger, case: Case, rules: Sequence[Rule]) -> int:
    told, number = _told(rules, "ran"), 0
    for number, run in enumerate(ledger.runs(), 1):  # noqa: B007
        case.workers.ran(run.worker, run.at)
        life = case.lives.get(run.job)
        if life is not None:
            life.lines += 1
        for look in told:
            look(life, run)
    return number


def _read_rest(ledger: Ledger, case: Case, rules: Sequence[Rule]) -> None:
    told = _told(rules, "stood")
    for final in ledger.final():
        life = case.lives.get(final.job)
        if life is not None:
            life.stands = True
        for look in told:
            look(life, final)
    told = _told(rules, "term")
    for term in ledger.terms():
        for look in told:
            look(term)
    told = _told(rules, "effect")
    for effect in ledger.effects():
        for look in told:
            look(effect)


def _conclude(ledger: Ledger, case: Case, moves: int, runs: int) -> Verdict:
    sizes = _Sizes(case)
    kept = {number: sorted(violations, key=sizes.of) for number, violations in case.findings.kept.items()}
    shortest = {number: named[0] for number, violations in kept.items() if (named := [v for v in violations if sizes.of(v)])}
    histories = tell(ledger, shortest.values(), sizes.offer_of)
    return Verdict(
        seed=case.course.seed,
        counts=Counts(
            jobs=len(case.lives),
            moves=moves,
            runs=runs,
            ticks=case.planned.count,
            calls=case.asked.calls,
            faults=dict(Counter(fault.kind for fault in case.faults if fault.done)),
            undone=dict(Counter(fault.kind for fault in case.faults if not fault.done)),
        ),
        totals={invariant: case.findings.totals[invariant.number] for invariant in INVARIANTS},
        violations=tuple(violation for invariant in INVARIANTS for violation in kept.get(invariant.number, ())[:MOST_SHOWN]),
        histories={number: histories[violation.subject] for number, violation in shortest.items()},
    )


class _Sizes:
    """How much is known of whom a violation is about."""

    def __init__(self, case: Case) -> None:
        self._case = case

    def of(self, violation: Violation) -> int:
        """0: it is about the whole campaign."""
        if violation.job is None:
            return int(any(of is not None for of in (violation.n, violation.duty, violation.schedule)))
        life = self._case.lives.get(violation.job)
        return 1 + (life.lines if life else 0) + len(self._case.asked.about.get(violation.job, ()))

    def offer_of(self, job: str) -> int | None:
        life = self._case.lives.get(job)
        return life.n if life else None
