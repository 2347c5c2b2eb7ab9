"""`tenure health`."""

from __future__ import annotations

from pathlib import Path

import click

from tenure.cli import exit_codes, options, output, param_types
from tenure.manager.health import DEAD_AFTER, UNREADY_AFTER, liveness, readiness
from tenure.settings import Settings


@click.command()
@click.option(
    "--file", "file", type=click.Path(path_type=Path), help="The path given to --health-file; default: workers.health_file."
)
@click.option("--live", "what", flag_value="live", default="live", help="Check that the supervisor is alive (default).")
@click.option("--ready", "what", flag_value="ready", help="Check that it has renewed its leases recently.")
@click.option(
    "--max-age",
    type=param_types.DURATION,
    help=f"The largest age that passes, such as 90s; default: {DEAD_AFTER:.0f}s for --live, {UNREADY_AFTER:.0f}s for --ready.",
)
@options.config_file
@options.as_json
def health(file: Path | None, what: str, max_age: float | None, as_json: bool) -> int:
    """Check the supervisor on this machine. For probes: exit code 0 or 1; does not connect to the database.

    Alive: its event loop runs, with or without PostgreSQL. Restart it if it is not alive. Ready: it has renewed its leases
    recently, which requires PostgreSQL. Container probes can check both without Python: see `docs/operations/deploy.md`.
    """
    path = file or _configured_path()
    live = liveness(path, max_age if what == "live" and max_age else DEAD_AFTER)
    ready = readiness(path, max_age if what == "ready" else None)
    asked = live if what == "live" else ready
    if as_json:
        output.print_json({"live": live.good, "ready": ready.good, "message": asked.message, "renewed_seconds_ago": ready.age})
    else:
        click.echo(asked.message, err=not asked.good)
    return exit_codes.SUCCESS if asked.good else exit_codes.FAILED


def _configured_path() -> Path:
    file = Settings.load(embedded=False).workers.health_file
    if file is None:
        raise click.UsageError("no health file is set: pass --file, or set health_file in [workers] of tenure.toml")
    return Path(file)
