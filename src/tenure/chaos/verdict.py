"""What the checker found: which invariants held, which were broken, and the shortest history of each broken one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

NAME_WIDTH = 46


class Invariant(NamedTuple):
    number: str
    name: str
    promise: str


class Violation(NamedTuple):
    """One violation, of a `job`, a request (`n`), a `duty` or a `schedule`; of the whole campaign if none of them is set."""

    number: str
    what: str
    job: str | None = None
    n: int | None = None
    duty: str | None = None
    schedule: str | None = None
    planned: float | None = None
    """The planned time of the schedule, in seconds since the epoch."""

    @property
    def subject(self) -> str:
        if self.schedule is not None:
            return f"schedule {self.schedule}" + ("" if self.planned is None else f" at {utc_time(self.planned)}")
        if self.job is not None:
            return f"job {self.job}"
        if self.n is not None:
            return f"request {self.n}"
        return "the campaign" if self.duty is None else f"duty {self.duty}"


def utc_time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


class HistoryLine(NamedTuple):
    at: float | None
    """Seconds since the campaign began; None: the state at the end."""
    what: str


class ViolationHistory(NamedTuple):
    subject: str
    lines: tuple[HistoryLine, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerCounts:
    jobs: int
    moves: int
    runs: int
    """Lines written by handlers: a start and an end are two."""
    ticks: int
    steps: int
    """Steps of workflows that were recorded as done or failed."""
    calls: int
    faults: Mapping[str, int]
    """By kind, the faults that were done."""
    undone: Mapping[str, int]
    """By kind, the faults that could not be done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckerVerdict:
    seed: int
    counts: LedgerCounts
    totals: Mapping[Invariant, int]
    """All invariants, in order, with the number of violations of each."""
    violations: tuple[Violation, ...]
    """Some violations of each invariant, those with the shortest histories first."""
    histories: Mapping[str, ViolationHistory]
    """By the number of an invariant, the shortest history of its violations."""

    @property
    def ok(self) -> bool:
        return not self.violations

    def as_text(self) -> str:
        return "\n".join(_text(self)) + "\n"

    def as_json(self) -> dict[str, Any]:
        """Plain values that can be written as JSON."""
        return {
            "ok": self.ok,
            "seed": self.seed,
            "counts": asdict(self.counts),
            "invariants": [
                {
                    "number": invariant.number,
                    "name": invariant.name,
                    "promise": invariant.promise,
                    "verdict": _word(found),
                    "violations": found,
                }
                for invariant, found in self.totals.items()
            ],
            "violations": [violation._asdict() for violation in self.violations],
            "histories": {
                number: {"subject": history.subject, "lines": [line._asdict() for line in history.lines]}
                for number, history in self.histories.items()
            },
        }


def _word(violations: int) -> str:
    return "broken" if violations else "held"


def _text(verdict: CheckerVerdict) -> Iterator[str]:
    yield f"seed {verdict.seed}: {_summary(verdict)}"
    yield _sizes(verdict.counts)
    yield ""
    for invariant, found in verdict.totals.items():
        result = f"{_word(found)} {found:,} times" if found else _word(found)
        yield f"  {invariant.number:<4} {invariant.name:<{NAME_WIDTH}} {result}"
    for invariant, found in verdict.totals.items():
        if found:
            yield from _violations(verdict, invariant, found)


def _summary(verdict: CheckerVerdict) -> str:
    checked = len(verdict.totals)
    broken = sum(found > 0 for found in verdict.totals.values())
    if not broken:
        return f"all {checked} invariants held"
    return f"{broken} of {checked} invariants broken, {sum(verdict.totals.values()):,} violations"


def _sizes(counts: LedgerCounts) -> str:
    faults = ", ".join(f"{kind} {number}" for kind, number in sorted(counts.faults.items()))
    return (
        f"{counts.jobs:,} jobs, {counts.moves:,} row changes, {counts.runs:,} handler lines, {counts.ticks:,} scheduled times, "
        f"{counts.steps:,} workflow steps, {counts.calls:,} client calls, "
        f"{sum(counts.faults.values()):,} faults{f' ({faults})' if faults else ''}"
    )


def _violations(verdict: CheckerVerdict, invariant: Invariant, found: int) -> Iterator[str]:
    shown = [violation for violation in verdict.violations if violation.number == invariant.number]
    yield ""
    yield f"{invariant.number} {invariant.name}: {invariant.promise}"
    for violation in shown:
        yield f"  {violation.subject} {violation.what}"
    if found > len(shown):
        yield f"  and {found - len(shown):,} more"
    history = verdict.histories.get(invariant.number)
    if history is not None:
        yield f"  Everything recorded about {history.subject}:"
        for line in history.lines:
            yield f"    {'at the end' if line.at is None else f'{line.at:+10.3f}'}  {line.what}"
