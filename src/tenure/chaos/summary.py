"""The figures of a campaign as a page's text."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Sequence
from pathlib import Path

from tenure.chaos.faults import KINDS
from tenure.chaos.order import Outcome
from tenure.chaos.verdict import CheckerVerdict
from tenure.model.errors import ConfigError
from tenure.version import __version__


def summary(outcome: Outcome, verdict: CheckerVerdict) -> str:
    order, counts = outcome.order, verdict.counts
    asked = sum(outcome.faults.values())
    command = f"tenure chaos run --seed {order.seed} --seconds {order.seconds:g}"
    figures = (
        f"{counts.jobs:,} jobs, {asked:,} faults of {len(outcome.faults)} kinds, {sum(verdict.totals.values()):,} violations"
    )
    lines = [
        f"`{command}`, Tenure {__version__}, Python {platform.python_version()}: **{figures}.**",
        f"{counts.moves:,} changes of rows, {counts.runs:,} lines of handlers and {counts.ticks:,} ticks were judged.",
        "",
        *table(
            ("Fault", "times", "what it does"),
            [(f"`{name}`", f"{times:,}", KINDS[name].about) for name, times in sorted(outcome.faults.items())],
        ),
        "",
        *table(
            ("", "Invariant", "verdict"),
            [
                (
                    told.number,
                    told.promise,
                    "not yet there" if not told.checked else f"broken {found:,} times" if found else "held",
                )
                for told, found in verdict.totals.items()
            ],
        ),
    ]
    if outcome.left_out:
        lines += ["", *(f"Left out here: `{name}` ({why})." for name, why in outcome.left_out.items())]
    return "\n".join(lines)


def failover_summary(outcome: Outcome, verdict: CheckerVerdict) -> str:
    times = sum(outcome.faults.values())
    broken = [f"{told.number} ({found:,})" for told, found in verdict.totals.items() if found]
    command = f"tenure chaos failover --seed {outcome.order.seed} --times {times}"
    figures = (
        f"{verdict.counts.jobs:,} jobs, {times} failovers to a standby that lagged, {sum(verdict.totals.values()):,} violations"
    )
    return f"`{command}`: **{figures}{': ' + ', '.join(broken) if broken else ''}.**"


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    return [f"| {' | '.join(map(str, row))} |" for row in (heads, ["---"] * len(heads), *rows)]


def publish(page: Path, name: str, text: str) -> None:
    """Between the marks of that name; the rest of the page stays."""
    begin, end = f"<!-- {name}: begin, written by a script -->", f"<!-- {name}: end -->"
    before, found, rest = page.read_text("utf-8").partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise ConfigError(f"{page} has no place for it: put the lines {begin!r} and {end!r} where it shall stand")
    page.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}", "utf-8")
