"""`tenure bench`: measures this machine and a PostgreSQL in a schema of its own, in about 20 seconds."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tenure.cli import options
from tenure.cli.output import Column, note, print_json, show_table

if TYPE_CHECKING:
    from tenure.cli.bench_run import BenchResult
    from tenure.settings import Settings


@click.command()
@click.option("--dsn", help="The PostgreSQL to measure; default: an embedded one in a temporary directory.")
@click.option("--seconds", type=click.FloatRange(1), default=15.0, show_default=True, help="For all measurements together.")
@click.option(
    "--concurrency",
    "-c",
    type=click.IntRange(1),
    default=100,
    show_default=True,
    help="Jobs at a time in the worker process that is measured.",
)
@options.as_json
def bench(*, dsn: str | None, seconds: float, concurrency: int, as_json: bool) -> None:
    """Measure how fast jobs are enqueued, started and run with this machine and this PostgreSQL.

    The jobs do nothing, so the figures are what Tenure itself costs. Everything happens in a new schema, which is dropped at the
    end: other schemas, and the jobs in them, are not touched. Only --dsn names the database; one that you have set is not used,
    because the load would slow it down.
    """
    from tenure.cli.bench_run import BenchRun  # noqa: PLC0415 - imports the driver
    from tenure.cli.temporary_server import temporary_folder  # noqa: PLC0415

    with temporary_folder("tenure-bench-") as folder, _server(dsn, folder) as settings:
        run = BenchRun(settings, folder / "worker.log", seconds, concurrency, report=_silent if as_json else note)
        result = asyncio.run(run.run())
    if as_json:
        print_json(result.to_json())
    else:
        _show(result)


def _silent(_: str) -> None:
    pass


@contextmanager
def _server(dsn: str | None, folder: Path) -> Iterator[Settings]:
    from tenure.cli.temporary_server import temporary_server  # noqa: PLC0415
    from tenure.settings import Settings  # noqa: PLC0415

    if dsn is not None:
        yield Settings.load(dsn=dsn)
        return
    with temporary_server(folder) as settings:
        yield settings


def _show(result: BenchResult) -> None:
    columns = (Column("MEASURED"), Column("JOBS", right=True), Column("RESULT"))
    show_table(columns, list(_rows(result)))
    click.echo(
        f"\nPostgreSQL {result.postgresql}, Python {result.python}, {result.cores} cores. One run: repeat it to see the spread."
    )


def _rows(result: BenchResult) -> Iterator[tuple[Any, ...]]:
    found = result.figures
    one, bulk, wakeup, drain = found.enqueue_one_by_one, found.enqueue_in_bulk, found.wakeup, found.drain
    yield "enqueue, one after the other", f"{one.jobs:,}", f"{one.per_second:,.0f} jobs/s"
    yield f"enqueue, {bulk.batch:,} in each call", f"{bulk.jobs:,}", f"{bulk.per_second:,.0f} jobs/s"
    yield "from enqueue to start, idle worker", f"{wakeup.jobs:,}", f"p50 {wakeup.p50_ms:,.1f} ms, p99 {wakeup.p99_ms:,.1f} ms"
    yield f"drain, 1 worker process, {drain.concurrency:,} at a time", f"{drain.jobs:,}", f"{drain.per_second:,.0f} jobs/s"
