"""`tenure health`."""

from __future__ import annotations

from pathlib import Path

import click

from tenure.cli import codes, options, output, types
from tenure.manager.health import DEAD_AFTER, UNREADY_AFTER, liveness, readiness
from tenure.settings import Settings


@click.command()
@click.option("--file", "file", type=click.Path(path_type=Path), help="As given to --health-file; else workers.health_file.")
@click.option("--live", "what", flag_value="live", default="live", help="Is the supervisor alive? The default.")
@click.option("--ready", "what", flag_value="ready", help="Have its leases been renewed lately?")
@click.option(
    "--max-age",
    type=types.DURATION,
    help=f"The oldest sign that is good enough, such as 90s: {DEAD_AFTER:.0f}s for --live, {UNREADY_AFTER:.0f}s for --ready.",
)
@options.config_file
@options.as_json
def health(file: Path | None, what: str, max_age: float | None, as_json: bool) -> int:
    """Is the supervisor on this machine alive, or ready? For probes: exit code 0 or 1; asks no database.

    Alive: its event loop turns, with or without PostgreSQL. Restart it when it is not. Ready: it has renewed its leases
    lately, which takes PostgreSQL. Probes of containers need no Python for either: see `docs/operations/deploy.md`.
    """
    kept = file or _set()
    live = liveness(kept, max_age if what == "live" and max_age else DEAD_AFTER)
    ready = readiness(kept, max_age if what == "ready" else None)
    asked = live if what == "live" else ready
    if as_json:
        output.emit({"live": live.good, "ready": ready.good, "message": asked.message, "renewed_seconds_ago": ready.age})
    else:
        click.echo(asked.message, err=not asked.good)
    return codes.FINE if asked.good else codes.FAILED


def _set() -> Path:
    file = Settings.load(embedded=False).workers.health_file
    if file is None:
        raise click.UsageError("no health file is set: give --file, or health_file in [workers] of tenure.toml")
    return Path(file)
