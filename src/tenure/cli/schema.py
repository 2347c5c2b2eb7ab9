"""`tenure migrate` and `tenure sql`."""

from __future__ import annotations

import asyncio
from typing import Literal

import click

from tenure.cli import options, output, pipes
from tenure.cli.command_context import open_app
from tenure.cli.output import Column
from tenure.store import migrator
from tenure.store.migrator import MigrationState
from tenure.store.roles import roles_sql
from tenure.store.target import DatabaseTarget

STATUS = (Column("MIGRATION"), Column("PHASE"), Column("APPLIED"))

PHASE = click.Choice(["pre", "post"])


@click.command()
@options.database
@options.app
@click.option("--phase", type=PHASE, help="Only the steps that must run before (pre) or after (post) the new workers start.")
@click.option("--dry-run", is_flag=True, help="Print what would run, without changing anything.")
@click.option("--status", is_flag=True, help="Print which steps are applied and pending, without changing anything.")
@click.option("--roles", is_flag=True, help="Also create the roles and grants that `tenure sql --roles` prints.")
@click.option("--force", is_flag=True, help="Run post steps even while old workers are running.")
@options.as_json
def migrate(
    *,
    dsn: str | None,
    schema: str | None,
    app: str | None,
    phase: Literal["pre", "post"] | None,
    dry_run: bool,
    status: bool,
    roles: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Migrate the database's schema to this version. Safe to repeat, and to run from several machines at once.

    In a rolling deployment run `--phase pre`, then replace the workers, then run `--phase post`. While workers of an older
    version are alive, `--phase post` fails, and without --phase only the pre steps run.
    """
    database = open_app(app, dsn, schema).settings.database
    if status:
        _show_status(asyncio.run(migrator.find_state(database)), database, as_json=as_json)
        return
    warnings: list[str] = []
    migration = migrator.migrate(
        database,
        phase=phase,
        force=force,
        dry_run=dry_run,
        report=lambda label: None if as_json else pipes.echo_if_open(f"would run {label}" if dry_run else label),
        warn=warnings.append if as_json else lambda words: pipes.echo_if_open(f"tenure: {words}", err=True),
    )
    ran = asyncio.run(migration)
    if roles and not dry_run:
        asyncio.run(migrator.apply_roles(database))
    if as_json:
        what = "would_run" if dry_run else "ran"
        output.print_json({"version": migrator.newest_version(), what: ran, "warnings": warnings})
    elif not ran and not warnings:
        pipes.echo_if_open(f"schema {database.schema!r} is at version {migrator.newest_version()}: nothing to do")


def _show_status(found: list[MigrationState], database: DatabaseTarget, *, as_json: bool) -> None:
    pending = {phase: [one.label for one in found if one.applied_at is None and one.phase == phase] for phase in ("pre", "post")}
    reached = max((one.version for one in found if one.applied_at is not None and one.phase == "pre"), default=None)
    if as_json:
        document = {"schema": database.schema, "version": reached, "needed": migrator.newest_version(), "pending": pending}
        output.print_json({**document, "migrations": found})
        return
    output.show_table(STATUS, [(one.label, one.phase, _applied(one)) for one in found])
    waiting = f"{len(pending['pre'])} pre and {len(pending['post'])} post steps are pending"
    output.note(
        f"schema {database.schema!r} is at version {reached or 0}, this code needs {migrator.newest_version()}; {waiting}"
    )


def _applied(one: MigrationState) -> str:
    if one.applied_at is None:
        return "pending"
    return f"{output.moment(one.applied_at)}" + ("" if one.known else ", by another version of Tenure")


@click.command()
@click.option("--schema", default="tenure", show_default=True, help="Schema that holds Tenure's tables.")
@click.option("--after", default=0, show_default=True, help="Only the steps after this version.")
@click.option("--phase", type=PHASE, help="Only the steps that must run before (pre) or after (post) the new workers start.")
@click.option("--no-transaction", is_flag=True, help="Omit begin and commit: for Alembic, Django's RunSQL and similar tools.")
@click.option("--roles", is_flag=True, help="Print roles and grants instead.")
@click.option(
    "--part",
    type=click.Choice(["create", "grants"]),
    help="With --roles: only what an administrator runs (create), or only what the owner of the schema runs (grants).",
)
def sql(
    *,
    schema: str,
    after: int,
    phase: Literal["pre", "post"] | None,
    no_transaction: bool,
    roles: bool,
    part: Literal["create", "grants"] | None,
) -> None:
    """Print the schema as SQL, for use with your own migration tool.

    `--roles` prints roles and grants. Run them after `tenure migrate`, and again after every upgrade: they can be repeated.
    """
    if part is not None and not roles:
        raise click.UsageError("--part requires --roles")
    if roles:
        click.echo(roles_sql(schema, part), nl=False)
    else:
        click.echo(migrator.migration_sql(schema, after=after, phase=phase, transaction=not no_transaction), nl=False)
