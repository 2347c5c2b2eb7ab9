"""`tenure chaos run`, `failover`, `check`, `plan` and `faults`."""

from __future__ import annotations

from dataclasses import asdict
from itertools import takewhile
from pathlib import Path
from typing import Any

import click

from tenure.chaos.campaign import run_campaign
from tenure.chaos.campaign_options import CampaignOptions
from tenure.chaos.checker import check as check_ledger
from tenure.chaos.failover import FailoverOptions, run_failover_campaign
from tenure.chaos.faults import KINDS
from tenure.chaos.faults.clocks import faketime
from tenure.chaos.ledger import Ledger
from tenure.chaos.plan import STORM_RATE, draw_plan
from tenure.chaos.summary import failover_summary, publish, summary
from tenure.cli import exit_codes, options
from tenure.cli.chaos_runner import Goal, drawn_seed, run_and_check
from tenure.cli.output import Column, print_json, show_table

seed_option = click.option("--seed", type=click.IntRange(0), help="The same seed gives the same plan; default: a random one.")
seconds_option = click.option(
    "--seconds", type=click.FloatRange(1), default=600.0, show_default=True, help="How long to inject faults."
)
rate_option = click.option(
    "--rate", type=click.FloatRange(0.1), default=STORM_RATE, show_default=True, help="Faults per second in a storm."
)
only_option = click.option(
    "--only", multiple=True, type=click.Choice(list(KINDS)), help="Inject only this kind of fault; repeatable."
)


@click.command()
@click.option("--dsn", help="A throwaway database on your own server; default: an embedded PostgreSQL.")
@seconds_option
@click.option("--jobs", type=click.IntRange(0), default=0, help="Continue until this many jobs were accepted.")
@click.option("--faults", type=click.IntRange(0), default=0, help="Continue until this many faults were injected.")
@click.option("--steps", type=click.IntRange(0), default=0, help="Continue until workflows have recorded this many steps.")
@click.option(
    "--workflows",
    type=click.FloatRange(0, 1),
    default=0.01,
    show_default=True,
    help="Which share of the many short jobs are workflows.",
)
@seed_option
@rate_option
@only_option
@click.option(
    "--workers", type=click.IntRange(3), default=4, show_default=True, help="Supervisors, each with its own worker processes."
)
@click.option("--processes", "-p", type=click.IntRange(1), default=2, show_default=True, help="Worker processes per supervisor.")
@click.option(
    "--lease",
    type=click.FloatRange(1),
    default=3.0,
    show_default=True,
    help="Worker lease in seconds; faults last up to three leases.",
)
@click.option("--backlog", type=click.IntRange(100), default=10_000, show_default=True, help="Most jobs that may wait at a time.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="A new directory for the ledger and logs; default: a temporary one, kept only if there are violations.",
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
    """Inject faults into real workers and a real PostgreSQL, and check that no promise is broken.

    Exit code 1: a promise was broken. The ledger is then kept, and `tenure chaos check` checks it again.
    """
    campaign = CampaignOptions(dsn=dsn, seconds=seconds, seed=drawn_seed(seed), only=only, **more)
    result = run_and_check(
        campaign.seed, out, lambda folder, show: run_campaign(campaign, folder, show), Goal.of(campaign), as_json=as_json
    )
    if page is not None:
        publish(page, "campaign", summary(result.outcome, result.verdict))
    return exit_codes.SUCCESS if result.good else exit_codes.FAILED


@click.command()
@click.option("--times", type=click.IntRange(1), default=2, show_default=True, help="How many times the primary is killed.")
@seed_option
@click.option("--out", type=click.Path(path_type=Path), help="A new directory for the ledger and logs.")
@click.option("--publish", "page", type=click.Path(path_type=Path, exists=True), help="Write the summary into this page.")
@options.as_json
def failover(*, times: int, seed: int | None, out: Path | None, page: Path | None, as_json: bool) -> int:
    """Kill a primary whose standby lags, promote the standby, and check that no promise is broken.

    Replication is asynchronous: transactions that had not reached the standby are lost, and are excused. All other promises
    must hold.
    """
    campaign = FailoverOptions(seed=drawn_seed(seed), times=times)
    goal = Goal(seconds=0, jobs=0, faults=times)
    result = run_and_check(
        campaign.seed, out, lambda folder, show: run_failover_campaign(campaign, folder, show), goal, as_json=as_json
    )
    if page is not None:
        publish(page, "failover", failover_summary(result.outcome, result.verdict))
    return exit_codes.SUCCESS if result.good else exit_codes.FAILED


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@options.as_json
def check(folder: Path, as_json: bool) -> int:
    """Check a recorded ledger: the directory that `tenure chaos run --out` wrote."""
    if not (folder / "ledger.json").exists():
        raise click.UsageError(f"{folder} has no ledger.json: give the directory that `tenure chaos run --out` wrote")
    verdict = check_ledger(Ledger(folder))
    print_json(verdict.as_json()) if as_json else click.echo(verdict.as_text())
    return exit_codes.SUCCESS if verdict.ok else exit_codes.FAILED


@click.command()
@seconds_option
@seed_option
@rate_option
@only_option
@options.as_json
def plan(seconds: float, seed: int | None, rate: float, only: tuple[str, ...], as_json: bool) -> None:
    """Print which faults a seed gives, and when, if all kinds are available."""
    kinds = {name: kind for name, kind in KINDS.items() if not only or name in only}
    in_lulls = frozenset(name for name, kind in kinds.items() if kind.in_lulls)
    endless = draw_plan(seed or 0, {name: kind.weight for name, kind in kinds.items()}, in_lulls, rate)
    planned = list(takewhile(lambda one: one.at < seconds, endless))
    if as_json:
        print_json({"seed": seed or 0, "faults": [asdict(one) for one in planned]})
    else:
        show_table((Column("AT", right=True), Column("FAULT")), [(f"{one.at:.1f} s", one.kind) for one in planned])


@click.command()
@options.as_json
def faults(as_json: bool) -> None:
    """List the kinds of faults, how often each is injected, and what it does."""
    if as_json:
        print_json({"faults": [{"name": kind.name, "weight": kind.weight, "about": kind.about} for kind in KINDS.values()]})
        return
    columns = (Column("FAULT"), Column("WEIGHT", right=True), Column("WHAT", flexible=True))
    show_table(columns, [(kind.name, f"{kind.weight:g}", kind.about) for kind in KINDS.values()])
    if faketime() is None:
        click.echo("move_clock needs libfaketime (apt-get install faketime)")
