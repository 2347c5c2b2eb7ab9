"""`tenure simulate`: enqueues jobs of many kinds, and checks that each ends as expected."""

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

from tenure.cli import exit_codes, options
from tenure.cli.database_choice import configured_or_embedded, project_home
from tenure.cli.live_display import Display, open_display
from tenure.cli.output import print_json
from tenure.cli.simulate_run import Simulation
from tenure.cli.simulate_verdict import SimulationVerdict, check_jobs, report_lines
from tenure.cli.worker_process import WorkerProcess, worker_process
from tenure.embedded.home import Home
from tenure.settings import Settings
from tenure.simulate.catalogue import app, describe
from tenure.simulate.mix import MIXES
from tenure.store.migrator import migrate

JOBS = 500
SEEDS = 1_000_000
PATIENCE = 30.0  # seconds to wait for the workers before enqueuing starts anyway
CATALOGUE = "tenure.simulate.catalogue:app"


@dataclass(frozen=True, slots=True)
class Order:
    """What to simulate. The same order gives the same jobs."""

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
@click.option(
    "--mix", type=click.Choice(list(MIXES)), default="mixed", show_default=True, help="Which kinds of jobs, and how often."
)
@click.option(
    "--rate", type=click.FloatRange(0), default=50.0, show_default=True, help="Jobs per second; 0: as fast as possible."
)
@click.option("--jobs", type=click.IntRange(1), help=f"How many jobs to enqueue ({JOBS}).")
@click.option("--seconds", type=click.FloatRange(0, min_open=True), help="How long to enqueue jobs, instead of how many.")
@click.option("--seed", type=click.IntRange(0), help="The same seed gives the same jobs; default: a random one.")
@click.option("--processes", "-p", type=click.IntRange(1), default=2, show_default=True, help="Worker processes to start.")
@click.option(
    "--concurrency", "-c", type=click.IntRange(1), default=20, show_default=True, help="Jobs at a time in each process."
)
@click.option("--no-workers", is_flag=True, help=f"Start no workers: workers of {CATALOGUE} are running already.")
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
    """Enqueue jobs of the catalogue, follow them, and check that each ends as expected.

    Without a database, an embedded one in .tenure is used. Ctrl-C stops enqueuing; the jobs that have ended are checked. Exit
    code 1: jobs did not end as expected.
    """
    if jobs is not None and seconds is not None:
        raise click.UsageError("give either --jobs or --seconds, not both")
    drawn = SystemRandom().randrange(SEEDS) if seed is None else seed
    order = Order(mix, drawn, rate, JOBS if jobs is None and seconds is None else jobs, seconds)
    display = open_display(silent=as_json)
    with display, configured_or_embedded(dsn, schema) as settings:
        asyncio.run(migrate(settings.database))
        app.configure(dsn=settings.dsn, schema=settings.schema)
        with nullcontext() if no_workers else _started_workers(settings, processes, concurrency) as workers:
            display.event(f"{MIXES[mix].name}: {MIXES[mix].about}; seed {drawn}")
            began = time.monotonic()
            verdict = asyncio.run(_simulate(order, display, workers))
    display.stop()
    if as_json:
        print_json(_document(order, verdict, time.monotonic() - began))
    else:
        display.print_lines(["", *(escape(line) for line in report_lines(verdict, order.command))])
    return exit_codes.SUCCESS if verdict.good else exit_codes.FAILED


@contextmanager
def _started_workers(settings: Settings, processes: int, concurrency: int) -> Iterator[WorkerProcess]:
    home = Home(project_home())
    home.make()  # marks it as ours, so that a server may use it later
    with worker_process(
        settings, CATALOGUE, home.folder / "simulate-worker.log", processes=processes, concurrency=concurrency
    ) as workers:
        yield workers


async def _simulate(order: Order, display: Display, workers: WorkerProcess | None) -> SimulationVerdict:
    simulation = Simulation(
        display=display,
        client=app.client(),
        calls=MIXES[order.mix].draw(order.seed),
        rate=order.rate,
        count=order.jobs,
        seconds=order.seconds,
        check=workers.check if workers else lambda: None,
    )
    _handle_signals(simulation, display)
    if workers is not None:
        await _wait_for_workers(simulation, workers)
    try:
        found = await simulation.run()
    except asyncio.CancelledError:
        raise click.Abort from None
    finally:
        await app.close()
    return check_jobs(simulation.sent, simulation.enqueued, found, interrupted=simulation.stop.is_set())


async def _wait_for_workers(simulation: Simulation, workers: WorkerProcess) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and not simulation.stop.is_set():
        workers.check()
        if any(worker.alive for worker in await simulation.client.workers()):
            return
        await asyncio.sleep(0.1)


def _handle_signals(simulation: Simulation, display: Display) -> None:
    """The first signal stops enqueuing, the second stops the simulation."""
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    assert task is not None

    def handle() -> None:
        if simulation.stop.is_set():
            task.cancel()
        else:
            display.event("no more jobs are enqueued; waiting up to 10 s for the others; signal again to stop now")
            simulation.stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, handle)


def _document(order: Order, verdict: SimulationVerdict, took: float) -> dict[str, Any]:
    return {
        "mix": order.mix,
        "seed": order.seed,
        "command": order.command,
        "seconds": round(took, 3),
        **verdict.to_json(),
    }
