"""`tenure enqueue`."""

from __future__ import annotations

import json
from typing import Any

import click

from tenure.app import Tenure
from tenure.cli import codes, handing_in, options, output, types
from tenure.cli.asking import Asker, answer, open_app
from tenure.client.handle import Handle
from tenure.model.errors import ConfigError, JobUnfinished, ResultTimeout

WITHOUT_END = "for ever"


class OptionalWait(click.Command):
    """`--wait` takes a duration or none: what follows belongs to it only if it looks like one."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, [*_settled(args)])


def _settled(args: list[str]) -> list[str]:
    settled: list[str] = []
    for number, word in enumerate(args):
        if word == "--":
            return settled + args[number:]
        if settled and settled[-1] == "--wait":
            settled[-1] += f"={word}" if word[:1].isdigit() else f"={WITHOUT_END}"
            if word[:1].isdigit():
                continue
        settled.append(word)
    return [*settled[:-1], f"--wait={WITHOUT_END}"] if settled and settled[-1] == "--wait" else settled


def _seconds(ctx: click.Context, param: click.Parameter, given: str | None) -> Any:
    return given if given in (None, WITHOUT_END) else types.DURATION.convert(given, param, ctx)


@click.command(cls=OptionalWait)
@click.argument("kind")
@click.argument("input", metavar="[JSON]", required=False, type=types.JSON, default=handing_in.NOTHING)
@click.option(
    "--arg", "-a", "args", multiple=True, metavar="NAME=VALUE", help="One argument; JSON if it reads as JSON, else text."
)
@click.option("--queue", "-q", help="Another queue than the job's own.")
@click.option("--priority", type=types.PRIORITY, help="0 to 100, or a name such as high.")
@click.option("--delay", type=types.DURATION, help="Not before that long: 30s, 5m, 2h.")
@click.option("--key", help="While a job with this key stands, a second one is not made.")
@click.option("--max-attempts", type=click.IntRange(1))
@click.option("--timeout", type=types.DURATION, help="Abort a run that takes longer.")
@click.option("--meta", type=types.JSON_OBJECT, help="JSON for the handler's context.")
@click.option("--wait", metavar="[SECONDS]", callback=_seconds, help="Wait for the result and print that; at most so long.")
@click.option("--app", help=f"Your Tenure object, as module:attribute. {options.APP_DEFAULT}")
@click.option("--no-check", is_flag=True, help="Hand it in as given: whether a job fits it is seen when it runs.")
@options.database
@options.as_json
def enqueue(
    *,
    kind: str,
    input: Any,  # noqa: A002 - the word for it
    args: tuple[str, ...],
    wait: float | str | None,
    app: str | None,
    no_check: bool,
    dsn: str | None,
    schema: str | None,
    as_json: bool,
    **told: Any,
) -> int | None:
    """Hand in a job. Its input is checked by the job's definition; prints the id.

    JSON is the input as an object, by the names of the function's parameters; `-` reads it from stdin. With --wait the result
    is printed instead, and the exit code is 5 if the job failed, 6 if it was not done in time, 7 if it was canceled.
    """
    given = handing_in.read(input, args)
    asker = Asker(_opened(app, dsn, schema, no_check), as_json=as_json)

    async def hand_in() -> int:
        call = handing_in.unchecked(kind, given, told) if no_check else handing_in.checked(asker, kind, given, told)
        [handle] = await asker.app.enqueue_many([call])
        return await _tell(asker, handle, wait)

    return answer(hand_in())


def _opened(path: str | None, dsn: str | None, schema: str | None, no_check: bool) -> Tenure:
    if no_check and path is None:
        return open_app(None, dsn, schema)
    app, folder = options.which_app(path)
    try:
        return open_app(app, dsn, schema, folder)
    except ConfigError as error:
        if path is not None or app not in str(error):
            raise
        raise ConfigError(f"{error}, name it by --app, or enqueue the job unchecked by --no-check") from None


async def _tell(ask: Asker, handle: Handle[Any], wait: float | str | None) -> int:
    told = {"id": handle.id, "kind": handle.kind, "existed": handle.existed, "same_input": handle.same_input}
    if wait is None:
        if ask.as_json:
            output.emit(told)
        else:
            click.echo(handle.id)
            _tell_existed(handle)
        return codes.FINE
    if not ask.as_json:
        output.say(str(handle.id))
        _tell_existed(handle)
    return await _wait(ask, handle, told, None if isinstance(wait, str) else wait)


def _tell_existed(handle: Handle[Any]) -> None:
    """That its input differs is told by a warning of the client."""
    if handle.existed:
        output.say("no new job was made: this one stands for the key already")


async def _wait(ask: Asker, handle: Handle[Any], told: dict[str, Any], seconds: float | None) -> int:
    try:
        await handle.result(seconds)
    except JobUnfinished as error:
        if not ask.as_json:
            if isinstance(error, ResultTimeout):
                output.say(f"`tenure watch {handle.id}` follows it, `tenure explain {handle.id}` says what it waits for")
            raise
        code = codes.of_error(error)
    else:
        code = codes.FINE
    status = await handle.status()
    if ask.as_json:
        output.emit({**told, "state": status.state, "output": status.output, "error": status.error})
    else:
        click.echo(json.dumps(status.output))
    return code
