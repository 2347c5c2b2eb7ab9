"""Judges a recorded campaign: reads the ledger once, passes every line to the rules, and reports which invariants held.

Needs nothing but the ledger: no database, no clock. A record with gaps is itself a violation (I0), so that no violation can
pass because it was not recorded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tenure.chaos.histories import collect_histories
from tenure.chaos.invariants import INVARIANTS, RULES
from tenure.chaos.invariants.lookups import (
    CONTACT_RECOVERY,
    CRASHES,
    FAILOVERS,
    LOCKS,
    OUTAGES,
    REFUSAL_RECOVERY,
    REFUSALS,
    CallLookup,
    ScheduleLookup,
    WorkerLookup,
    disturbed_windows,
    fault_windows,
)
from tenure.chaos.invariants.rule import Case, Rule
from tenure.chaos.invariants.traces import ENDED_STEP_STATES, STEPS, JobTrace, apply_step_change
from tenure.chaos.ledger import Ledger
from tenure.chaos.verdict import CheckerVerdict, LedgerCounts, Violation

MAX_SHOWN = 20
"""Violations of one invariant that a verdict lists."""


def check(ledger: Ledger) -> CheckerVerdict:
    case = _open_case(ledger)
    rules = [rule(case) for rule in RULES]
    moves = _read_moves(ledger, case, rules)
    runs = _read_runs(ledger, case, rules)
    _read_rest(ledger, case, rules)
    steps = _read_steps(ledger, case, rules)
    for at_end in _methods(rules, "at_end"):
        at_end()
    return _verdict(ledger, case, CheckedTotals(moves, runs, steps))


def _open_case(ledger: Ledger) -> Case:
    faults = tuple(ledger.faults())
    return Case(
        campaign=ledger.campaign(),
        faults=faults,
        crashes=fault_windows(faults, CRASHES),
        outages=fault_windows(faults, OUTAGES),
        locks=disturbed_windows(fault for fault in faults if fault.kind in LOCKS),
        lost_commits=fault_windows(faults, FAILOVERS),
        disturbed=disturbed_windows(faults),
        without_contact=disturbed_windows(faults, at_least=CONTACT_RECOVERY),
        refusals=fault_windows(faults, REFUSALS, after=REFUSAL_RECOVERY),
        calls=CallLookup(ledger.calls()),
        schedules=ScheduleLookup(ledger.schedules(), ledger.ticks()),
        workers=WorkerLookup(ledger.workers(), faults),
        limits=tuple(ledger.limits()),
        links=tuple(ledger.links()),
    )


def _methods(rules: Sequence[Rule], name: str) -> list[Callable[..., None]]:
    """The methods of this name, of the rules that define it."""
    return [getattr(rule, name) for rule in rules if hasattr(rule, name)]


def _read_moves(ledger: Ledger, case: Case, rules: Sequence[Rule]) -> int:
    jobs, number = case.jobs, 0
    methods = {step: _methods(rules, f"on_{step}") for step in STEPS}
    for number, move in enumerate(ledger.moves(), 1):  # noqa: B007 - how many there were
        job = jobs.get(move.job)
        if job is None:
            job = jobs[move.job] = JobTrace(move.job)
        step = job.step(move)
        for method in methods[step]:
            method(job, move)
        job.apply(step, move)
    return number


def _read_runs(ledger: Ledger, case: Case, rules: Sequence[Rule]) -> int:
    methods, number = _methods(rules, "on_handler_line"), 0
    for number, line in enumerate(ledger.runs(), 1):  # noqa: B007
        case.workers.add_handler_line(line.worker, line.at)
        job = case.jobs.get(line.job)
        if job is not None:
            job.lines += 1
        for method in methods:
            method(job, line)
    return number


def _read_rest(ledger: Ledger, case: Case, rules: Sequence[Rule]) -> None:
    methods = _methods(rules, "on_final")
    for final in ledger.final():
        job = case.jobs.get(final.job)
        if job is not None:
            job.in_final = True
        for method in methods:
            method(job, final)
    methods = _methods(rules, "on_term")
    for term in ledger.terms():
        for method in methods:
            method(term)
    methods = _methods(rules, "on_effect")
    for effect in ledger.effects():
        for method in methods:
            method(effect)
    methods = _methods(rules, "on_audit")
    for entry in ledger.audit():
        for method in methods:
            method(entry)


def _read_steps(ledger: Ledger, case: Case, rules: Sequence[Rule]) -> int:
    """All changes before all lines: a line is compared with what is recorded of its step."""
    methods, recorded = _methods(rules, "on_step"), 0
    for change in ledger.steps():
        recorded += change.state in ENDED_STEP_STATES and change.was not in ENDED_STEP_STATES
        job, steps = case.jobs.get(change.job), case.steps.setdefault(change.job, {})
        if job is not None:
            job.lines += 1
        for method in methods:
            method(job, change)
        apply_step_change(steps, change, deleted=job is None or job.gone)
    methods = _methods(rules, "on_value")
    for line in ledger.values():
        job = case.jobs.get(line.job)
        if job is not None:
            job.lines += 1
        for method in methods:
            method(job, line)
    return recorded


class CheckedTotals(NamedTuple):
    """What was read."""

    moves: int
    runs: int
    steps: int


def _verdict(ledger: Ledger, case: Case, read: CheckedTotals) -> CheckerVerdict:
    sizes = _HistorySizes(case)
    kept = {number: sorted(violations, key=sizes.of) for number, violations in case.findings.kept.items()}
    shortest = {number: named[0] for number, violations in kept.items() if (named := [v for v in violations if sizes.of(v)])}
    histories = collect_histories(ledger, shortest.values(), sizes.request_of)
    return CheckerVerdict(
        seed=case.campaign.seed,
        counts=LedgerCounts(
            jobs=len(case.jobs),
            moves=read.moves,
            runs=read.runs,
            ticks=case.schedules.count,
            steps=read.steps,
            calls=case.calls.count,
            faults=dict(Counter(fault.kind for fault in case.faults if fault.done)),
            undone=dict(Counter(fault.kind for fault in case.faults if not fault.done)),
        ),
        totals={invariant: case.findings.totals[invariant.number] for invariant in INVARIANTS},
        violations=tuple(violation for invariant in INVARIANTS for violation in kept.get(invariant.number, ())[:MAX_SHOWN]),
        histories={number: histories[violation.subject] for number, violation in shortest.items()},
    )


class _HistorySizes:
    """How much the ledger has about the subject of a violation."""

    def __init__(self, case: Case) -> None:
        self._case = case

    def of(self, violation: Violation) -> int:
        """0: it concerns the whole campaign."""
        if violation.job is None:
            return int(any(subject is not None for subject in (violation.n, violation.duty, violation.schedule)))
        job = self._case.jobs.get(violation.job)
        return 1 + (job.lines if job else 0) + len(self._case.calls.by_job.get(violation.job, ()))

    def request_of(self, job_id: str) -> int | None:
        job = self._case.jobs.get(job_id)
        return job.n if job else None
