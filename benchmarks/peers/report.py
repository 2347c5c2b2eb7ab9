"""One table: a column for each queue. JSON for machines."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.machine import Machine
from benchmarks.peers.comparison import Comparison, Participant
from benchmarks.peers.contestant import figure_of
from benchmarks.peers.registry import TENURE
from benchmarks.peers.rows import AIMS, ROWS, Aim, PeerRow
from benchmarks.report import aim, disturbed, noise_as_json, number
from tenure.chaos.summary import table

TITLE = "Tenure and peers: medians of {} round(s); in brackets: Tenure's figure divided by this one"


def show(console: Console, machine: Machine, comparison: Comparison, *, quick: bool) -> None:
    names = present(comparison)
    shown = Table(title=TITLE.format(comparison.sizes.rounds), title_justify="left")
    shown.add_column("")
    for name in names:
        shown.add_column(name, justify="right")
    for row in ROWS:
        shown.add_row(_title(row), *(_cell(comparison, row, name) for name in names))
    console.print(str(machine))
    console.print(_scale(comparison))
    if quick:
        console.print("quick: figures are rough")
    console.print(shown)
    for participant in comparison.participants:
        console.print(_settings(participant))
    for name, reason in comparison.missing.items():
        console.print(f"[bold red]{name}: not available:[/] {reason}")
    for wanted in AIMS:
        if wanted.peer in names:
            console.print(_reach(comparison, wanted))
    console.print(disturbed(comparison.noise))


def as_json(machine: Machine, comparison: Comparison, *, quick: bool) -> dict[str, Any]:
    return {
        "quick": quick,
        "machine": asdict(machine),
        "sizes": asdict(comparison.sizes),
        "peers": {participant.name: asdict(participant.described) for participant in comparison.participants},
        "not_available": comparison.missing,
        "rows": [_entry(comparison, row, name) for row in ROWS for name in present(comparison) if _has(comparison, row, name)],
        "noise": noise_as_json(comparison.noise),
    }


def as_markdown(machine: Machine, comparison: Comparison) -> str:
    """For a page of the docs."""
    names = present(comparison)
    lines = [f"{machine}. {_scale(comparison)}. {TITLE.format(comparison.sizes.rounds)}.", ""]
    lines += table(("", *names), [(_title(row), *(_cell(comparison, row, name) for name in names)) for row in ROWS])
    lines += ["", *(f"- {participant}" for participant in map(_settings, comparison.participants))]
    lines += [f"- {name}: not available: {reason}" for name, reason in comparison.missing.items()]
    return "\n".join(lines)


def present(comparison: Comparison) -> list[str]:
    """Those that have all their figures."""
    return [participant.name for participant in comparison.participants if participant.name not in comparison.missing]


def _title(row: PeerRow) -> str:
    return f"{row.title} ({row.unit})" if row.unit else row.title


def _settings(participant: Participant) -> str:
    return f"{participant.name} {participant.described.version}: {participant.described.settings}"


def _cell(comparison: Comparison, row: PeerRow, name: str) -> str:
    if not _has(comparison, row, name):
        return "-"
    figure = number(comparison.figures.median(figure_of(name, row.key)))
    return figure if name == TENURE.name else f"{figure} ({_ratio(comparison, row.key, name):.2f})"


def _entry(comparison: Comparison, row: PeerRow, name: str) -> dict[str, Any]:
    key = figure_of(name, row.key)
    return {
        "key": row.key,
        "title": row.title.strip(),
        "unit": row.unit,
        "peer": name,
        "figure": comparison.figures.median(key),
        "rounds": comparison.figures.rounds(key),
        "ratio": _ratio(comparison, row.key, name),
    }


def _reach(comparison: Comparison, wanted: Aim) -> str:
    [title] = [row.title for row in ROWS if row.key == wanted.row]
    ratio = _ratio(comparison, wanted.row, wanted.peer)
    reached = "reached" if wanted.target.reached(ratio) else "[bold red]NOT reached[/]"
    return f"target: {title} / {wanted.peer} {aim(wanted.target)}: {ratio:.2f}, {reached}"


def _ratio(comparison: Comparison, key: str, name: str) -> float:
    return comparison.figures.ratio(figure_of(TENURE.name, key), figure_of(name, key))


def _has(comparison: Comparison, row: PeerRow, name: str) -> bool:
    return comparison.figures.has(figure_of(name, row.key))


def _scale(comparison: Comparison) -> str:
    sizes = comparison.sizes
    slow = [f"{peer.name} {peer.share:.0%}" for peer in comparison.candidates if peer.share < 1]
    fewer = f" (of them {', '.join(slow)})" if slow else ""
    return f"drains of {sizes.jobs:,} jobs{fewer}; {sizes.wakeups} wake-ups; {sizes.steady:,} jobs at {sizes.rate:g}/s"
