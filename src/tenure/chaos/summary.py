"""The figures of a campaign as Markdown, for a page of the docs."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Sequence
from pathlib import Path

from tenure.chaos.campaign_options import CampaignOutcome
from tenure.chaos.faults import KINDS
from tenure.chaos.verdict import CheckerVerdict
from tenure.model.errors import ConfigError
from tenure.version import __version__


def summary(outcome: CampaignOutcome, verdict: CheckerVerdict) -> str:
    options, counts = outcome.options, verdict.counts
    faults = sum(outcome.faults.values())
    goals = {"jobs": options.jobs, "faults": options.faults, "steps": options.steps}
    until = "".join(f" --{name} {goal}" for name, goal in goals.items() if goal)
    command = (
        f"tenure chaos run --seed {options.seed} --seconds {options.seconds:g}{until} --workflows {options.workflows:g} "
        f"--rate {options.rate:g}"
    )
    figures = (
        f"{counts.jobs:,} jobs, {counts.steps:,} workflow steps, {faults:,} faults of {len(outcome.faults)} kinds, "
        f"{sum(verdict.totals.values()):,} violations"
    )
    lines = [
        f"`{command}`, Tenure {__version__}, Python {platform.python_version()}: **{figures}.**",
        f"The checker judged {counts.moves:,} row changes, {counts.runs:,} handler lines and {counts.ticks:,} scheduled times.",
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
                    invariant.number,
                    invariant.promise,
                    f"broken {found:,} times" if found else "held",
                )
                for invariant, found in verdict.totals.items()
            ],
        ),
    ]
    if outcome.unavailable:
        lines += ["", *(f"Not available here: `{name}` ({why})." for name, why in outcome.unavailable.items())]
    return "\n".join(lines)


def failover_summary(outcome: CampaignOutcome, verdict: CheckerVerdict) -> str:
    times = sum(outcome.faults.values())
    broken = [f"{invariant.number} ({found:,})" for invariant, found in verdict.totals.items() if found]
    command = f"tenure chaos failover --seed {outcome.options.seed} --times {times}"
    figures = f"{verdict.counts.jobs:,} jobs, {times} failovers to a lagging standby, {sum(verdict.totals.values()):,} violations"
    return f"`{command}`: **{figures}{': ' + ', '.join(broken) if broken else ''}.**"


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    return [f"| {' | '.join(map(str, row))} |" for row in (heads, ["---"] * len(heads), *rows)]


def publish(page: Path, name: str, text: str) -> None:
    """Replaces the text between the markers of that name; the rest of the page stays."""
    begin, end = f"<!-- {name}: begin, written by a script -->", f"<!-- {name}: end -->"
    before, found, rest = page.read_text("utf-8").partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise ConfigError(f"{page} has no block {name!r}: put the lines {begin!r} and {end!r} where the text belongs")
    page.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}", "utf-8")
