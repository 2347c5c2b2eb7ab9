"""`tenure enqueue`."""

from __future__ import annotations

import json
from typing import Any

import click

from tenure.app import Tenure
from tenure.cli import exit_codes, options, output, param_types
from tenure.cli.command_context import CommandContext, open_app, run_async
from tenure.cli.enqueue_input import read_input
from tenure.client.calls_from_text import NO_INPUT, checked_call, unchecked_call
from tenure.client.handle import Handle
from tenure.model.errors import ConfigError, JobUnfinished, ResultTimeout

NO_LIMIT = "no limit"


class OptionalWait(click.Command):
    """`--wait` takes an optional duration: the next word belongs to it only if it starts with a digit."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, _join_wait(args))


def _join_wait(args: list[str]) -> list[str]:
    joined: list[str] = []
    for number, word in enumerate(args):
        if word == "--":
            return joined + args[number:]
        if joined and joined[-1] == "--wait":
            joined[-1] += f"={word}" if word[:1].isdigit() else f"={NO_LIMIT}"
            if word[:1].isdigit():
                continue
        joined.append(word)
    return [*joined[:-1], f"--wait={NO_LIMIT}"] if joined and joined[-1] == "--wait" else joined


def _seconds(ctx: click.Context, param: click.Parameter, given: str | None) -> Any:
    return given if given in (None, NO_LIMIT) else param_types.DURATION.convert(given, param, ctx)


@click.command(cls=OptionalWait)
@click.argument("kind")
@click.argument("input", metavar="[JSON]", required=False, type=param_types.JSON, default=NO_INPUT)
@click.option(
    "--arg", "-a", "args", multiple=True, metavar="NAME=VALUE", help="One argument; JSON if it is valid JSON, otherwise text."
)
@click.option("--queue", "-q", help="Queue; default: the job's own.")
@click.option("--priority", type=param_types.PRIORITY, help="0 to 100, or a name such as high.")
@click.option("--delay", type=param_types.DURATION, help="Run it after this delay: 30s, 5m, 2h.")
@click.option("--key", help="Idempotency key: if a job with this key exists, no second one is created.")
@click.option("--max-attempts", type=click.IntRange(1))
@click.option("--timeout", type=param_types.DURATION, help="Abort an attempt that takes longer.")
@click.option("--meta", type=param_types.JSON_OBJECT, help="JSON object for the handler's context.")
@click.option(
    "--wait", metavar="[SECONDS]", callback=_seconds, help="Wait for the result and print it; optionally at most this long."
)
@click.option("--app", help=f"Your Tenure object as module:attribute. {options.APP_DEFAULT}")
@click.option("--no-check", is_flag=True, help="Enqueue the input as given, without loading an app.")
@options.database
@options.as_json
def enqueue(
    *,
    kind: str,
    input: Any,  # noqa: A002 - the usual name
    args: tuple[str, ...],
    wait: float | str | None,
    app: str | None,
    no_check: bool,
    dsn: str | None,
    schema: str | None,
    as_json: bool,
    **job_options: Any,
) -> int | None:
    """Enqueue a job and print its id. The input is validated against the job's definition.

    JSON is an object with the function's arguments by name; `-` reads it from stdin. With --wait the result is printed instead,
    and the exit code is 5 if the job failed, 6 if it did not finish in time, 7 if it was canceled.
    """
    given = read_input(input, args)
    context = CommandContext(_open_app(app, dsn, schema, no_check), as_json=as_json)

    async def enqueue_job() -> int:
        if no_check:
            call = unchecked_call(kind, given, job_options, by=options.whoami())
        else:
            call = checked_call(context.job(kind), given, job_options, by=options.whoami())
        [handle] = await context.app.enqueue_many([call])
        return await _print_result(context, handle, wait)

    return run_async(enqueue_job())


def _open_app(path: str | None, dsn: str | None, schema: str | None, no_check: bool) -> Tenure:
    if no_check and path is None:
        return open_app(None, dsn, schema)
    app, folder = options.which_app(path)
    try:
        return open_app(app, dsn, schema, folder)
    except ConfigError as error:
        if path is not None or app not in str(error):
            raise
        raise ConfigError(f"{error}; or pass --no-check to enqueue without the app") from None


async def _print_result(context: CommandContext, handle: Handle[Any], wait: float | str | None) -> int:
    facts = {"id": handle.id, "kind": handle.kind, "existed": handle.existed, "same_input": handle.same_input}
    if wait is None:
        if context.as_json:
            output.print_json(facts)
        else:
            click.echo(handle.id)
            _note_existing(handle)
        return exit_codes.SUCCESS
    if not context.as_json:
        output.note(str(handle.id))
        _note_existing(handle)
    return await _wait(context, handle, facts, None if isinstance(wait, str) else wait)


def _note_existing(handle: Handle[Any]) -> None:
    """If its input differs, the client logs a warning."""
    if handle.existed:
        output.note("no new job was created: this job has the key already")


async def _wait(context: CommandContext, handle: Handle[Any], facts: dict[str, Any], seconds: float | None) -> int:
    try:
        await handle.result(seconds)
    except JobUnfinished as error:
        if not context.as_json:
            if isinstance(error, ResultTimeout):
                output.note(f"`tenure watch {handle.id}` follows it, `tenure explain {handle.id}` shows what it waits for")
            raise
        code = exit_codes.of_error(error)
    else:
        code = exit_codes.SUCCESS
    status = await handle.status()
    if context.as_json:
        output.print_json({**facts, "state": status.state, "output": status.output, "error": status.error})
    else:
        click.echo(json.dumps(status.output))
    return code
