"""`tenure simulate`: many jobs of many kinds, each of which must end as foretold."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from random import SystemRandom
from typing import Any

import click
from rich.markup import escape

from tenure.cli import codes, options
from tenure.cli.crew import Crew, crew
from tenure.cli.databases import project_home, set_or_embedded
from tenure.cli.output import emit
from tenure.cli.simulation import Simulation
from tenure.cli.stage import Stage, open_stage
from tenure.cli.verdict import Verdict, judge, told
from tenure.embedded.home import Home
from tenure.settings import Settings
from tenure.simulate.catalogue import app, describe
from tenure.simulate.mix import MIXES
from tenure.store.migrator import migrate

JOBS = 500
SEEDS = 1_000_000
PATIENCE = 30.0  # seconds for the workers to start; they may as well start later
CATALOGUE = "tenure.simulate.catalogue:app"


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be simulated: the same order, the same jobs."""

    mix: str
    seed: int
    rate: float
    jobs: int | None
    seconds: float | None

    @property
    def command(self) -> str:
        much = f"--jobs {self.jobs}" if self.seconds is None else f"--seconds {self.seconds:g}"
        return f"tenure simulate --mix {self.mix} --seed {self.seed} {much} --rate {self.rate:g}"


def _listed(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        for entry in describe():
            click.echo(f"{entry.kind}\n    {entry.does} Ends: {entry.ends}.")
        ctx.exit()


@click.command()
@options.database
@click.option("--mix", type=click.Choice(list(MIXES)), default="mixed", show_default=True, help="Which kinds, how often.")
@click.option("--rate", type=click.FloatRange(0), default=50.0, show_default=True, help="Jobs a second; 0: all at once.")
@click.option("--jobs", type=click.IntRange(1), help=f"How many jobs to send ({JOBS}).")
@click.option("--seconds", type=click.FloatRange(0, min_open=True), help="For how long to send, instead of how many.")
@click.option("--seed", type=click.IntRange(0), help="The same seed gives the same jobs; else one is drawn.")
@click.option("--processes", "-p", type=click.IntRange(1), default=2, show_default=True, help="Worker processes to start.")
@click.option("--concurrency", "-c", type=click.IntRange(1), default=20, show_default=True, help="Jobs at a time in each.")
@click.option("--no-workers", is_flag=True, help=f"Start none: those that serve {CATALOGUE} are there already.")
@options.as_json
@click.option("--list", is_flag=True, is_eager=True, expose_value=False, callback=_listed, help="Print the catalogue of kinds.")
def simulate(
    *,
    dsn: str | None,
    schema: str | None,
    mix: str,
    rate: float,
    jobs: int | None,
    seconds: float | None,
    seed: int | None,
    processes: int,
    concurrency: int,
    no_workers: bool,
    as_json: bool,
) -> int:
    """Send jobs of the catalogue, watch them, and check that each ended as foretold.

    Without a database, one in .tenure is used. Ctrl-C ends the sending; what is over by then is checked. Exit code 1: there
    were surprises.
    """
    if jobs is not None and seconds is not None:
        raise click.UsageError("give either --jobs or --seconds, not both")
    drawn = SystemRandom().randrange(SEEDS) if seed is None else seed
    order = Order(mix, drawn, rate, JOBS if jobs is None and seconds is None else jobs, seconds)
    stage = open_stage(silent=as_json)
    with stage, set_or_embedded(dsn, schema) as settings:
        asyncio.run(migrate(settings.database))
        app.configure(dsn=settings.dsn, schema=settings.schema)
        with nullcontext() if no_workers else _hired(settings, processes, concurrency) as hired:
            stage.say(f"{MIXES[mix].name}: {MIXES[mix].about}; seed {drawn}")
            began = time.monotonic()
            verdict = asyncio.run(_simulate(order, stage, hired))
    stage.freeze()
    if as_json:
        emit(_document(order, verdict, time.monotonic() - began))
    else:
        stage.quote(["", *(escape(line) for line in told(verdict, order.command))])
    return codes.FINE if verdict.good else codes.FAILED


@contextmanager
def _hired(settings: Settings, processes: int, concurrency: int) -> Iterator[Crew]:
    home = Home(project_home())
    home.make()  # marked as ours, so that a server may live there later
    with crew(settings, CATALOGUE, home.folder / "simulate-worker.log", processes=processes, concurrency=concurrency) as hired:
        yield hired


async def _simulate(order: Order, stage: Stage, hired: Crew | None) -> Verdict:
    simulation = Simulation(
        stage=stage,
        client=app.client(),
        calls=MIXES[order.mix].draw(order.seed),
        rate=order.rate,
        count=order.jobs,
        seconds=order.seconds,
        check=hired.check if hired else lambda: None,
    )
    _heed_signals(simulation, stage)
    if hired is not None:
        await _workers_up(simulation, hired)
    try:
        found = await simulation.run()
    except asyncio.CancelledError:
        raise click.Abort from None
    finally:
        await app.close()
    return judge(simulation.sent, simulation.handed_in, found, interrupted=simulation.stop.is_set())


async def _workers_up(simulation: Simulation, hired: Crew) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and not simulation.stop.is_set():
        hired.check()
        if any(worker.alive for worker in await simulation.client.workers()):
            return
        await asyncio.sleep(0.1)


def _heed_signals(simulation: Simulation, stage: Stage) -> None:
    """The first ends the sending, the second ends it all."""
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    assert task is not None

    def heed() -> None:
        if simulation.stop.is_set():
            task.cancel()
        else:
            stage.say("nothing more is sent; waiting a little for the rest (again to end at once)")
            simulation.stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, heed)


def _document(order: Order, verdict: Verdict, took: float) -> dict[str, Any]:
    return {
        "mix": order.mix,
        "seed": order.seed,
        "command": order.command,
        "seconds": round(took, 3),
        **verdict.to_json(),
    }
