"""The `tenure` command: a table of sub-commands, each in its own module."""

from __future__ import annotations

import sys
from importlib import import_module

import click

from tenure.model.errors import ConfigError, SchemaMismatch, TenureError
from tenure.version import __version__

COMMANDS = {
    "demo": ("tenure.cli.demo:demo", "See it at work: starts a PostgreSQL, workers and jobs, and kills one of them."),
    "up": ("tenure.cli.up:up", "Run workers; without a database, start one in .tenure first."),
    "dev": ("tenure.cli.up:dev", "Like up, and start anew whenever the code changes."),
    "worker": ("tenure.cli.worker:worker", "Run jobs: a supervisor and its worker processes."),
    "migrate": ("tenure.cli.schema:migrate", "Bring the database's schema to this version."),
    "sql": ("tenure.cli.schema:sql", "Print the schema, or roles and grants, as SQL."),
}

EXIT_CODES = {ConfigError: 3, SchemaMismatch: 4}


class LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(module), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, help_) for name, (_, help_) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="tenure")
def cli() -> None:
    """Durable background jobs on PostgreSQL.

    Exit codes: 0 all well, 1 failed, 2 wrong usage, 3 wrong or missing settings, 4 the schema does not fit.
    """


def main() -> None:
    try:
        cli()
    except TenureError as error:
        click.echo(f"tenure: {error}", err=True)
        sys.exit(EXIT_CODES.get(type(error), 1))
