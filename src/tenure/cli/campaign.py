"""`tenure chaos run`, `check`, `plan` and `faults`."""

from __future__ import annotations

import logging
import shutil
import tempfile
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from itertools import takewhile
from pathlib import Path
from random import SystemRandom
from typing import Any

import click
from rich.markup import escape

from tenure.chaos.campaign import conduct
from tenure.chaos.checker import check as judge
from tenure.chaos.faults import KINDS
from tenure.chaos.faults.clocks import faketime
from tenure.chaos.ledger import Ledger
from tenure.chaos.order import Order, Outcome, Sight
from tenure.chaos.plan import draw_plan
from tenure.chaos.summary import publish, summary
from tenure.chaos.verdict import Verdict
from tenure.cli import codes, options
from tenure.cli.output import Column, emit, show_table
from tenure.cli.stage import Scene, Stage, open_stage
from tenure.manager.loops import run_loop

SEEDS = 1_000_000
LATEST = 6

PHASES = {"storm": "faults at work", "peace": "faults are over; waiting for the rest", "record": "bringing in the record"}

seed_option = click.option("--seed", type=click.IntRange(0), help="The same seed gives the same plan; else one is drawn.")
seconds_option = click.option(
    "--seconds", type=click.FloatRange(1), default=600.0, show_default=True, help="How long faults come."
)
only_option = click.option("--only", multiple=True, type=click.Choice(list(KINDS)), help="Only these kinds of faults.")


@click.command()
@click.option("--dsn", help="A database that nobody needs, on your own server; else an embedded PostgreSQL.")
@seconds_option
@click.option("--jobs", type=click.IntRange(0), default=0, help="Go on until so many jobs were accepted.")
@click.option("--faults", type=click.IntRange(0), default=0, help="Go on until there were so many faults.")
@seed_option
@only_option
@click.option("--workers", type=click.IntRange(3), default=4, show_default=True, help="Supervisors, each with its processes.")
@click.option("--processes", "-p", type=click.IntRange(1), default=2, show_default=True, help="Worker processes of each.")
@click.option(
    "--lease", type=click.FloatRange(1), default=3.0, show_default=True, help="Seconds; faults last up to three of them."
)
@click.option("--backlog", type=click.IntRange(100), default=10_000, show_default=True, help="Jobs that may wait at a time.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="A new folder for the ledger and logs; else it is kept only if there are violations.",
)
@click.option("--publish", "page", type=click.Path(path_type=Path, exists=True), help="Write the summary into this page.")
@options.as_json
def run(
    *,
    dsn: str | None,
    seconds: float,
    seed: int | None,
    only: tuple[str, ...],
    out: Path | None,
    page: Path | None,
    as_json: bool,
    **more: Any,
) -> int:
    """Strike real workers and a real PostgreSQL, and judge what became of the jobs.

    Exit code 1: a promise was broken. Then the ledger is kept, and `tenure chaos check` judges it again.
    """
    drawn = SystemRandom().randrange(SEEDS) if seed is None else seed
    order = Order(dsn=dsn, seconds=seconds, seed=drawn, only=only, **more)
    stage = open_stage(silent=as_json)
    with _folder(out) as folder, stage:
        stage.say(f"seed {drawn}: the same plan again with --seed {drawn}")
        outcome = run_loop(conduct(order, folder, Watching(stage, seconds).show))
        stage.say("judging the record")
        verdict = judge(Ledger(folder))
        good = verdict.ok and not outcome.surprises and not outcome.gave_up
        kept = None if good and out is None else folder
        if kept is None:
            shutil.rmtree(folder)
    stage.freeze()
    _tell(stage, outcome, verdict, kept, as_json=as_json)
    if page is not None:
        publish(page, "campaign", summary(outcome, verdict))
    return codes.FINE if good else codes.FAILED


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@options.as_json
def check(folder: Path, as_json: bool) -> int:
    """Judge a recorded ledger: the folder that `tenure chaos run --out` wrote."""
    if not (folder / "ledger.json").exists():
        raise click.UsageError(f"{folder} has no ledger.json: give the folder that `tenure chaos run --out FOLDER` wrote")
    verdict = judge(Ledger(folder))
    emit(verdict.as_json()) if as_json else click.echo(verdict.as_text())
    return codes.FINE if verdict.ok else codes.FAILED


@click.command()
@seconds_option
@seed_option
@only_option
@options.as_json
def plan(seconds: float, seed: int | None, only: tuple[str, ...], as_json: bool) -> None:
    """Print which faults a seed gives, and when, where all kinds can come."""
    kinds = {name: kind for name, kind in KINDS.items() if not only or name in only}
    in_lulls = frozenset(name for name, kind in kinds.items() if kind.in_lulls)
    endless = draw_plan(seed or 0, {name: kind.weight for name, kind in kinds.items()}, in_lulls)
    planned = list(takewhile(lambda one: one.at < seconds, endless))
    if as_json:
        emit({"seed": seed or 0, "faults": [asdict(one) for one in planned]})
    else:
        show_table((Column("AT", right=True), Column("FAULT")), [(f"{one.at:.1f} s", one.kind) for one in planned])


@click.command()
@options.as_json
def faults(as_json: bool) -> None:
    """The kinds of faults, how often each comes, and what it does."""
    if as_json:
        emit({"faults": [{"name": kind.name, "weight": kind.weight, "about": kind.about} for kind in KINDS.values()]})
        return
    columns = (Column("FAULT"), Column("WEIGHT", right=True), Column("WHAT", flexible=True))
    show_table(columns, [(kind.name, f"{kind.weight:g}", kind.about) for kind in KINDS.values()])
    if faketime() is None:
        click.echo("move_clock needs libfaketime (apt-get install faketime)")


class Watching:
    """Shows a campaign under way: what moves, and the latest faults."""

    def __init__(self, stage: Stage, seconds: float) -> None:
        self._stage = stage
        self._seconds = seconds
        self._latest: deque[str] = deque(maxlen=LATEST)
        self._phase = ""

    def show(self, sight: Sight) -> None:
        if sight.latest and (not self._latest or self._latest[-1] != sight.latest):
            self._latest.append(sight.latest)
        if sight.phase != self._phase:
            self._phase = sight.phase
            self._stage.say(PHASES[sight.phase])
        facts = [
            ("time", f"{min(sight.elapsed, self._seconds):.0f} of {self._seconds:.0f} s"),
            ("jobs accepted", f"{sight.accepted:,}"),
            ("live", f"{sight.live:,}"),
            ("faults", f"{sight.faults:,} of {sight.kinds} kinds"),
        ]
        self._stage.show(Scene(heading="", rows=[], facts=[facts], notes=["", *(f"  {escape(line)}" for line in self._latest)]))


@contextmanager
def _folder(out: Path | None) -> Iterator[Path]:
    if out is None:
        folder = Path(tempfile.mkdtemp(prefix="tenure-chaos-"))
    else:
        if out.exists() and any(out.iterdir()):
            raise click.UsageError(f"{out} is not empty: a ledger needs a folder of its own")
        out.mkdir(parents=True, exist_ok=True)
        folder = out.absolute()
    # As root the server runs under another account, which must be able to pass.
    folder.chmod(0o711)
    logging.getLogger("tenure").setLevel(logging.ERROR)
    yield folder


def _tell(stage: Stage, outcome: Outcome, verdict: Verdict, kept: Path | None, *, as_json: bool) -> None:
    if as_json:
        emit(
            {
                "order": asdict(outcome.order),
                **asdict(outcome),
                "verdict": verdict.as_json(),
                "ledger": str(kept) if kept else None,
            }
        )
        return
    stage.quote(["", *(escape(line) for line in verdict.as_text().splitlines())])
    for words in (
        *outcome.gave_up,
        *(f"a client met an error of no kind that is promised: {error}" for error in outcome.surprises),
    ):
        stage.quote([f"[bold red]{escape(words)}[/]"])
    for name, why in outcome.left_out.items():
        stage.quote([f"left out: {name} ({why})"])
    if kept:
        stage.quote([f"the ledger is in {kept}: `tenure chaos check {kept}`"])
