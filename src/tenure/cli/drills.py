"""`tenure chaos drills`."""

from __future__ import annotations

import logging
from dataclasses import asdict
from pathlib import Path

import click
from rich.markup import escape

from tenure.chaos.drills import DRILLS, DrillResult
from tenure.chaos.summary import publish, table
from tenure.cli import codes, options
from tenure.cli.output import emit
from tenure.cli.stage import open_stage
from tenure.manager.loops import run_loop

NAMES = [drill.name for drill in DRILLS]


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(NAMES), metavar="[DRILL]...")
@click.option("--publish", "page", type=click.Path(path_type=Path, exists=True), help="Write the figures into this page.")
@options.as_json
def drills(names: tuple[str, ...], page: Path | None, as_json: bool) -> int:
    """Measure how fast work comes back, on an embedded PostgreSQL and with default settings.

    Without a name: all of them, about twelve minutes. Exit code 1: a goal was missed.
    """
    logging.getLogger("tenure").setLevel(logging.ERROR)
    stage = open_stage(silent=as_json)
    figures: list[DrillResult] = []
    with stage:
        for drill in DRILLS:
            if not names or drill.name in names:
                stage.say(f"{drill.name}: {drill.about}")
                figure = run_loop(drill.run(lambda words: stage.say(f"  {escape(words)}")))
                stage.say(f"  [bold]{escape(figure.measured)}[/]")
                stage.say(f"  {'goal met' if figure.met else '[bold red]goal missed[/]'}: {escape(figure.goal)}")
                figures.append(figure)
    if as_json:
        emit({"figures": [asdict(figure) for figure in figures]})
    if page is not None:
        rows = [(figure.name, figure.goal, figure.measured, "yes" if figure.met else "no") for figure in figures]
        publish(page, "drills", "\n".join(table(("Drill", "goal", "measured", "met"), rows)))
    return codes.FINE if all(figure.met for figure in figures) else codes.FAILED
