"""`tenure health`."""

from __future__ import annotations

from pathlib import Path

import click

from tenure.cli import codes, options, output, types
from tenure.manager.vitals import UNWELL_AFTER, health_of
from tenure.settings import Settings


@click.command()
@click.option("--file", "file", type=click.Path(path_type=Path), help="As given to --health-file; else workers.health_file.")
@click.option("--max-age", type=types.DURATION, default=UNWELL_AFTER, show_default="2m", help="So old it may be: 90s, 5m.")
@options.as_json
def health(file: Path | None, max_age: float, as_json: bool) -> int:
    """Is the supervisor on this machine well? For probes of containers: exit code 0 or 1; asks no database.

    It is while it renews the leases of its processes, which it tells by touching a file. An outage of PostgreSQL makes it
    unwell only after two minutes: it would be over it by itself.
    """
    well, told = health_of(file or _set(), max_age)
    if as_json:
        output.emit({"well": well, "told": told})
    else:
        click.echo(told, err=not well)
    return codes.FINE if well else codes.FAILED


def _set() -> Path:
    file = Settings.load().workers.health_file
    if file is None:
        raise click.UsageError("no health file is set: give --file, or health_file in [workers] of tenure.toml")
    return Path(file)
