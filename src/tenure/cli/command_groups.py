"""Command groups that import a command when it runs, and the conversion of errors to messages and exit codes."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem

from tenure.cli import exit_codes, pipes
from tenure.model.errors import TenureError

Table = Mapping[str, tuple[str, str]]
"""By name: where the command is (`module:attribute`), and its help."""

NO_PRIVILEGE = "42501"  # SQLSTATE


class LazyGroup(click.Group):
    """Shows its help without importing the commands."""

    def __init__(self, *args: Any, table: Table, sections: Mapping[str, Sequence[str]] | None = None, **more: Any) -> None:
        """`sections`: the names of the commands under each heading of the help."""
        super().__init__(*args, **more)
        self.table = table
        self.sections = sections or {"Commands": list(table)}

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
            hint = f"did you mean {near[0]!r}?" if near else f"the commands are {', '.join(self.table)}"
            raise click.UsageError(f"unknown command {args[0]!r}; {hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        widest = max(map(len, self.table))
        for title, names in self.sections.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(widest), self.table[name][1]) for name in names])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        names = [CompletionItem(name, help=help_) for name, (_, help_) in self.table.items() if name.startswith(incomplete)]
        return names + click.Command.shell_complete(self, ctx, incomplete)


class RootGroup(LazyGroup):
    """Turns the result of every command into an exit code, and errors into one line."""

    def main(self, args: Sequence[str] | None = None, *more_args: Any, standalone_mode: bool = True, **more: Any) -> Any:
        run: Any = partial(super().main, args, *more_args, standalone_mode=False, **more)
        if not standalone_mode:
            return run()
        given = list(sys.argv[1:] if args is None else args)
        sys.exit(_exit_code(run, _ErrorPrinter(as_json="--json" in given)))

    # After a closed pipe click exits with 1, which here means that the command failed.

    def make_context(self, *args: Any, **more: Any) -> click.Context:
        with pipes.exit_on_closed_pipe():
            return super().make_context(*args, **more)

    def invoke(self, ctx: click.Context) -> Any:
        with pipes.exit_on_closed_pipe():
            return super().invoke(ctx)


class _ErrorPrinter:
    """Prints an error to stderr: as one line, or as a JSON document with --json."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json

    def show(self, error: BaseException, message: str, code: int) -> int:
        if self.as_json:
            document = {"error": {"type": type(error).__name__, "message": message, "exit_code": code}}
            pipes.echo_if_open(json.dumps(document), err=True)
        else:
            pipes.echo_if_open(f"tenure: {message}", err=True)
        return code


def _exit_code(run: Callable[[], Any], errors: _ErrorPrinter) -> int:
    try:
        code = run()
    except click.UsageError as error:
        return _usage_error(error, errors)
    except click.ClickException as error:
        return errors.show(error, error.format_message(), error.exit_code)
    except click.Abort as error:
        return errors.show(error, "stopped", exit_codes.INTERRUPTED)
    except TenureError as error:
        return errors.show(error, str(error), exit_codes.of_error(error))
    except Exception as error:
        state = getattr(error, "sqlstate", None)
        if state is None and not errors.as_json:
            raise  # a bug: show its traceback
        remedy = "; `tenure sql --roles` prints the grants" if state == NO_PRIVILEGE else ""
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        return errors.show(error, f"PostgreSQL refused: {first}{remedy}" if state else first, exit_codes.FAILED)
    return code if isinstance(code, int) else exit_codes.SUCCESS


def _usage_error(error: click.UsageError, errors: _ErrorPrinter) -> int:
    if isinstance(error, getattr(click.exceptions, "NoArgsIsHelpError", ())):
        error.show()
        return exit_codes.USAGE
    message = error.format_message()
    if error.ctx and "\n" not in message:  # else it lists what to choose from
        message += f" (see `{error.ctx.command_path} --help`)"
    return errors.show(error, message, exit_codes.USAGE)
