"""One table for people, JSON for machines."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.figures import Figures
from benchmarks.machine import Machine
from benchmarks.noise import StepNoise
from benchmarks.plan import Bench
from benchmarks.rows import ROWS, Row, Target
from benchmarks.sizes import Sizes
from tenure.chaos.summary import table

WIDTH = 128  # if the output does not go to a terminal


def show(console: Console, machine: Machine, bench: Bench, *, quick: bool) -> None:
    sizes, figures = bench.sizes, bench.figures
    shown = Table(title=f"Tenure: medians of {sizes.rounds} round(s); the worst decides what is reached", title_justify="left")
    for name in ("", "figure", "ratio", "target", "reached"):
        shown.add_column(name, justify="right" if name in ("figure", "ratio") else "left")
    rows = measured(figures)
    for row, following in zip(rows, [*rows[1:], None], strict=True):
        shown.add_row(*_table_row(row, figures), end_section=following is None or following.letter != row.letter)
    console.print(str(machine))
    console.print(_scale(sizes))
    if quick:
        console.print("quick: figures are rough")
    console.print(shown)
    console.print(disturbed(bench.noise))


def measured(figures: Figures) -> list[Row]:
    return [row for row in ROWS if figures.has(row.key) and (row.of is None or figures.has(row.of))]


def as_json(machine: Machine, bench: Bench, *, quick: bool) -> dict[str, Any]:
    return {
        "quick": quick,
        "machine": asdict(machine),
        "sizes": asdict(bench.sizes),
        "rows": [_entry(row, bench.figures) for row in measured(bench.figures)],
        "noise": noise_as_json(bench.noise),
    }


def as_markdown(machine: Machine, bench: Bench) -> str:
    """For a page of the docs."""
    figures = bench.figures
    heads = ("", "median", "worst round", "median ratio", "worst ratio", "goal", "reached in every round")
    rows = [_markdown_row(row, figures) for row in measured(figures)]
    return "\n".join(
        [
            f"{machine}. {bench.sizes.rounds} round(s). {_scale(bench.sizes)}.",
            "",
            *table(heads, rows),
            "",
            f"{disturbed(bench.noise)}.",
        ]
    )


def _markdown_row(row: Row, figures: Figures) -> tuple[str, ...]:
    ratios = ("", "")
    if row.of is not None:
        ratios = (f"{figures.ratio(row.key, row.of):.2f} of {row.of_title}", f"{row.worst_ratio(figures):.2f}")
    return (
        f"({row.letter}) {row.title.strip()}",
        f"{number(figures.median(row.key))} {row.unit}".strip(),
        number(row.worst(figures)),
        *ratios,
        " and ".join(map(aim, row.targets)),
        {True: "yes", False: "**no**", None: ""}[row.reached(figures)],
    )


def _entry(row: Row, figures: Figures) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "key": row.key,
        "row": row.letter,
        "title": row.title.strip(),
        "figure": figures.median(row.key),
        "unit": row.unit,
        "rounds": figures.rounds(row.key),
        "targets": [asdict(target) for target in row.targets],
        "reached": row.reached(figures),
    }
    if row.of is not None:
        entry["ratio"] = {
            "value": figures.ratio(row.key, row.of),
            "of": row.of_title,
            "figure": figures.median(row.of),
            "rounds": figures.rounds(row.of),
        }
    return entry


def _table_row(row: Row, figures: Figures) -> tuple[str, ...]:
    ratio = "" if row.of is None else f"{figures.ratio(row.key, row.of):.2f} of {row.of_title} {number(figures.median(row.of))}"
    return (
        f"({row.letter}) {row.title}",
        f"{number(figures.median(row.key))} {row.unit}".strip(),
        ratio,
        " and ".join(map(aim, row.targets)),
        {True: "yes", False: "[bold red]NO[/]", None: ""}[row.reached(figures)],
    )


def aim(target: Target) -> str:
    sign, limit = (">=", target.at_least) if target.at_least is not None else ("<=", target.at_most)
    assert limit is not None
    return f"{sign} {limit:.2f}x" if target.of_ratio else f"{sign} {limit:,g}"


def number(value: float) -> str:
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.2f}" if value >= 1 else f"{value:.3f}"


def disturbed(noise: Sequence[StepNoise]) -> str:
    told = [step.cores for step in noise if step.cores is not None]
    speeds = [step.speed_ms for step in noise]
    others = (
        f"others kept {statistics.mean(told):.1f} cores busy, {max(told):.1f} in the worst step" if told else "others: unknown"
    )
    return f"meanwhile: {others}; the same piece of work took {min(speeds):.1f} to {max(speeds):.1f} ms of CPU"


def noise_as_json(noise: Sequence[StepNoise]) -> list[dict[str, Any]]:
    names = ("step", "cores_used_by_others", "fixed_work_ms")
    return [dict(zip(names, step, strict=True)) for step in noise]


def _scale(sizes: Sizes) -> str:
    return (
        f"drains of {sizes.jobs:,} jobs, {sizes.concurrency} at a time in each child; "
        f"snapshot: {sizes.gone_through:,} gone through; "
        f"burdens: {sizes.scheduled:,} scheduled, {sizes.finished:,} finished, {sizes.unknown:,} unknown"
    )
