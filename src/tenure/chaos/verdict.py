"""What the checker found: which promises held, which did not, and the shortest story of each that did not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple


class Invariant(NamedTuple):
    number: str
    name: str
    promise: str
    checked: bool = True
    """False: what it speaks of is not there yet."""


class Violation(NamedTuple):
    """One breach. `job`, `n` (an offer), `duty` or `schedule` says whose; none of them: the whole campaign's."""

    number: str
    what: str
    job: str | None = None
    n: int | None = None
    duty: str | None = None
    schedule: str | None = None
    planned: float | None = None
    """Of a schedule: about which of its planned times, in seconds since the epoch."""

    @property
    def subject(self) -> str:
        if self.schedule is not None:
            return f"schedule {self.schedule}" + ("" if self.planned is None else f" at {moment(self.planned)}")
        if self.job is not None:
            return f"job {self.job}"
        if self.n is not None:
            return f"offer {self.n}"
        return "the campaign" if self.duty is None else f"duty {self.duty}"


def moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


class Line(NamedTuple):
    at: float | None
    """Seconds after the begin of the campaign; None: how it stood at the end."""
    what: str


class History(NamedTuple):
    subject: str
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    jobs: int
    moves: int
    runs: int
    """Lines of handlers: a start and an end are two."""
    ticks: int
    calls: int
    faults: Mapping[str, int]
    """By kind, those that were done."""
    undone: Mapping[str, int]
    """By kind, those that could not be done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    seed: int
    counts: Counts
    totals: Mapping[Invariant, int]
    """All invariants, in order, with the number of their violations."""
    violations: tuple[Violation, ...]
    """Of each invariant at most some, those with the shortest histories first."""
    histories: Mapping[str, History]
    """By an invariant's number, the shortest history of those that violate it."""

    @property
    def ok(self) -> bool:
        return not self.violations

    def as_text(self) -> str:
        return "\n".join(_text(self)) + "\n"

    def as_json(self) -> dict[str, Any]:
        """Plain values, for whoever writes JSON."""
        return {
            "ok": self.ok,
            "seed": self.seed,
            "counts": asdict(self.counts),
            "invariants": [
                {
                    "number": told.number,
                    "name": told.name,
                    "promise": told.promise,
                    "verdict": _word(told, found),
                    "violations": found,
                }
                for told, found in self.totals.items()
            ],
            "violations": [violation._asdict() for violation in self.violations],
            "histories": {
                number: {"subject": history.subject, "lines": [line._asdict() for line in history.lines]}
                for number, history in self.histories.items()
            },
        }


def _word(invariant: Invariant, violations: int) -> str:
    if not invariant.checked:
        return "not yet"
    return "broken" if violations else "held"


def _text(verdict: Verdict) -> Iterator[str]:
    yield f"seed {verdict.seed}: {_summary(verdict)}"
    yield _sizes(verdict.counts)
    yield ""
    for invariant, found in verdict.totals.items():
        told = f"{_word(invariant, found)} {found:,} times" if found else _word(invariant, found)
        yield f"  {invariant.number:<4} {invariant.name:<46} {told}"
    for invariant, found in verdict.totals.items():
        if found:
            yield from _breaches(verdict, invariant, found)


def _summary(verdict: Verdict) -> str:
    checked = sum(invariant.checked for invariant in verdict.totals)
    broken = sum(found > 0 for found in verdict.totals.values())
    if not broken:
        return f"all {checked} invariants held"
    return f"{broken} of {checked} invariants broken, {sum(verdict.totals.values()):,} violations"


def _sizes(counts: Counts) -> str:
    faults = ", ".join(f"{kind} {number}" for kind, number in sorted(counts.faults.items()))
    return (
        f"{counts.jobs:,} jobs, {counts.moves:,} moves, {counts.runs:,} lines of runs, {counts.ticks:,} ticks, "
        f"{counts.calls:,} calls, {sum(counts.faults.values()):,} faults{f' ({faults})' if faults else ''}"
    )


def _breaches(verdict: Verdict, invariant: Invariant, found: int) -> Iterator[str]:
    shown = [violation for violation in verdict.violations if violation.number == invariant.number]
    yield ""
    yield f"{invariant.number} {invariant.name}: {invariant.promise}"
    for violation in shown:
        yield f"  {violation.subject} {violation.what}"
    if found > len(shown):
        yield f"  and {found - len(shown):,} more"
    history = verdict.histories.get(invariant.number)
    if history is not None:
        yield f"  All that is known of {history.subject}:"
        for line in history.lines:
            yield f"    {'at the end' if line.at is None else f'{line.at:+10.3f}'}  {line.what}"
