"""`tenure chaos drills`."""

from __future__ import annotations

import logging
from dataclasses import asdict
from pathlib import Path

import click
from rich.markup import escape

from tenure.chaos.drills import DRILLS, DrillResult
from tenure.chaos.summary import publish, table
from tenure.cli import exit_codes, options
from tenure.cli.live_display import open_display
from tenure.cli.output import print_json
from tenure.manager.loops import run_loop

NAMES = [drill.name for drill in DRILLS]


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(NAMES), metavar="[DRILL]...")
@click.option("--publish", "page", type=click.Path(path_type=Path, exists=True), help="Write the figures into this page.")
@options.as_json
def drills(names: tuple[str, ...], page: Path | None, as_json: bool) -> int:
    """Measure recovery times, on an embedded PostgreSQL and with default settings.

    Without a name, all drills run, which takes about twelve minutes. Exit code 1: a goal was missed.
    """
    logging.getLogger("tenure").setLevel(logging.ERROR)
    display = open_display(silent=as_json)
    figures: list[DrillResult] = []
    with display:
        for drill in DRILLS:
            if not names or drill.name in names:
                display.event(f"{drill.name}: {drill.about}")
                figure = run_loop(drill.run(lambda words: display.event(f"  {escape(words)}")))
                display.event(f"  [bold]{escape(figure.measured)}[/]")
                display.event(f"  {'goal met' if figure.met else '[bold red]goal missed[/]'}: {escape(figure.goal)}")
                figures.append(figure)
    if as_json:
        print_json({"figures": [asdict(figure) for figure in figures]})
    if page is not None:
        rows = [(figure.name, figure.goal, figure.measured, "yes" if figure.met else "no") for figure in figures]
        publish(page, "drills", "\n".join(table(("Drill", "goal", "measured", "met"), rows)))
    return exit_codes.SUCCESS if all(figure.met for figure in figures) else exit_codes.FAILED
