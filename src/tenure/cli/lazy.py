"""Groups of commands that are loaded when they are called, and an end for every error that people can read."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem

from tenure.cli import codes
from tenure.model.errors import TenureError

Table = Mapping[str, tuple[str, str]]
"""By name: where the command is (`module:attribute`), and what it does."""


NO_PRIVILEGE = "42501"  # SQLSTATE


class LazyGroup(click.Group):
    """Shows its table without loading any of it."""

    def __init__(self, *args: Any, table: Table, **more: Any) -> None:
        super().__init__(*args, **more)
        self.table = table

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in self.table:
            return None
        module, _, name = self.table[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(module), name)
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in self.table and not args[0].startswith("-"):
            near = get_close_matches(args[0], self.table, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(self.table)}"
            raise click.UsageError(f"there is no command {args[0]!r}; {hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, help_) for name, (_, help_) in self.table.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        names = [CompletionItem(name, help=help_) for name, (_, help_) in self.table.items() if name.startswith(incomplete)]
        return names + click.Command.shell_complete(self, ctx, incomplete)


class RootGroup(LazyGroup):
    """Where every command ends: with a code, and one line if something was wrong."""

    def main(self, *args: Any, standalone_mode: bool = True, **more: Any) -> Any:
        run: Any = partial(super().main, *args, standalone_mode=False, **more)
        if not standalone_mode:
            return run()
        sys.exit(_ended(run))


def _ended(run: Callable[[], Any]) -> int:
    try:
        code = run()
    except click.UsageError as error:
        return _misused(error)
    except click.ClickException as error:
        return _told(error.format_message(), error.exit_code)
    except click.Abort:
        return _told("stopped", codes.STOPPED)
    except TenureError as error:
        return _told(str(error), codes.of_error(error))
    except Exception as error:
        state = getattr(error, "sqlstate", None)
        if state is None:
            raise
        way_out = "; `tenure sql --roles` prints the grants" if state == NO_PRIVILEGE else ""
        return _told(f"PostgreSQL refuses: {str(error).strip().splitlines()[0]}{way_out}", codes.FAILED)
    return code if isinstance(code, int) else codes.FINE


def _misused(error: click.UsageError) -> int:
    if isinstance(error, getattr(click.exceptions, "NoArgsIsHelpError", ())):
        error.show()
        return codes.USAGE
    way_out = f" (see `{error.ctx.command_path} --help`)" if error.ctx else ""
    return _told(f"{error.format_message()}{way_out}", codes.USAGE)


def _told(words: str, code: int) -> int:
    click.echo(f"tenure: {words}", err=True)
    return code
