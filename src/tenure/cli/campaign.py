"""`tenure chaos run`, `failover`, `check`, `plan` and `faults`."""

from __future__ import annotations

from dataclasses import asdict
from itertools import takewhile
from pathlib import Path
from typing import Any

import click

from tenure.chaos.campaign import run_campaign
from tenure.chaos.campaign_options import CampaignOptions
from tenure.chaos.checker import check as judge
from tenure.chaos.failover import FailoverOptions, run_failover_campaign
from tenure.chaos.faults import KINDS
from tenure.chaos.faults.clocks import faketime
from tenure.chaos.ledger import Ledger
from tenure.chaos.plan import draw_plan
from tenure.chaos.summary import failover_summary, publish, summary
from tenure.cli import codes, options
from tenure.cli.judged import Goal, drawn_seed, run_and_judge
from tenure.cli.output import Column, emit, show_table

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
    order = CampaignOptions(dsn=dsn, seconds=seconds, seed=drawn_seed(seed), only=only, **more)
    judged = run_and_judge(
        order.seed, out, lambda folder, show: run_campaign(order, folder, show), Goal.of(order), as_json=as_json
    )
    if page is not None:
        publish(page, "campaign", summary(judged.outcome, judged.verdict))
    return codes.FINE if judged.good else codes.FAILED


@click.command()
@click.option("--times", type=click.IntRange(1), default=2, show_default=True, help="How often the primary dies.")
@seed_option
@click.option("--out", type=click.Path(path_type=Path), help="A new folder for the ledger and logs.")
@click.option("--publish", "page", type=click.Path(path_type=Path, exists=True), help="Write the summary into this page.")
@options.as_json
def failover(*, times: int, seed: int | None, out: Path | None, page: Path | None, as_json: bool) -> int:
    """Kill a primary whose standby lags, promote the standby, and judge what became of the jobs.

    Replication is asynchronous: what was committed while the standby lagged is gone, and is excused. All else must hold.
    """
    order = FailoverOptions(seed=drawn_seed(seed), times=times)
    goal = Goal(seconds=0, jobs=0, faults=times)
    judged = run_and_judge(
        order.seed, out, lambda folder, show: run_failover_campaign(order, folder, show), goal, as_json=as_json
    )
    if page is not None:
        publish(page, "failover", failover_summary(judged.outcome, judged.verdict))
    return codes.FINE if judged.good else codes.FAILED


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
