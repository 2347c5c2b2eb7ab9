"""`tenure migrate` and `tenure sql`."""

from __future__ import annotations

import asyncio
import json
from typing import Literal

import click

from tenure.cli import options
from tenure.settings import Settings
from tenure.store import migrator


@click.command()
@options.database
@click.option("--phase", type=click.Choice(["pre", "post"]), help="Only what must run before, or after, the new workers start.")
@click.option("--json", "as_json", is_flag=True, help="Print what was done as JSON.")
def migrate(dsn: str | None, schema: str | None, phase: Literal["pre", "post"] | None, as_json: bool) -> None:
    """Bring the database's schema to this version. Safe to repeat, and to run from several places at once.

    In a rolling deploy run `--phase pre` first, then replace the workers, then run `--phase post`.
    """
    place = Settings.load(dsn=dsn, schema=schema).place
    ran = asyncio.run(migrator.migrate(place, phase=phase, tell=(lambda _: None) if as_json else click.echo))
    if as_json:
        click.echo(json.dumps({"version": migrator.newest_version(), "ran": ran}))
    elif not ran:
        click.echo(f"schema {place.schema!r} is at version {migrator.newest_version()}: nothing to do")


@click.command()
@click.option("--schema", default="tenure", show_default=True, help="Schema that holds Tenure's tables.")
@click.option("--after", default=0, show_default=True, help="Only what came after this version.")
@click.option("--roles", is_flag=True, help="Print roles and grants instead.")
def sql(schema: str, after: int, roles: bool) -> None:
    """Print the schema as SQL, for those who run their own migrations."""
    click.echo(migrator.roles_sql(schema) if roles else migrator.migration_sql(schema, after=after), nl=False)
