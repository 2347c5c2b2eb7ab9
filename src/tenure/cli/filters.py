"""Which jobs are meant: the options that lists, cancellations and replays share. Their values are the client's filters."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import click

from tenure.cli import types
from tenure.model.states import State

Command = TypeVar("Command", bound=Callable[..., Any])


def _joined(_: click.Context, __: click.Parameter, given: Iterable[frozenset[State]]) -> list[State] | None:
    return sorted(frozenset().union(*given)) or None


_OPTIONS = {
    "state": click.option(
        "--state", "-s", type=types.STATES, multiple=True, callback=_joined, metavar="STATE", help="One or several, by commas."
    ),
    "kind": click.option("--kind", "-k", help="The job's name."),
    "queue": click.option("--queue", "-q"),
    "priority": click.option("--priority", type=types.PRIORITY, help="0 to 100, or a name such as high."),
    "capability": click.option("--capability", help="What the job needs."),
    "key": click.option("--key", help="The idempotency key."),
    "parent": click.option("--parent", type=click.UUID, metavar="ID", help="The job that handed them in."),
    "enqueued_after": click.option(
        "--since", "enqueued_after", type=types.MOMENT, help="Handed in since: 2h, 1d, or a time such as 2026-01-31T18:30."
    ),
    "enqueued_before": click.option("--until", "enqueued_before", type=types.MOMENT, help="Handed in before that."),
    "input": click.option("--input", type=types.JSON_OBJECT, help="What the job's input contains."),
}


def filters(*, without: Iterable[str] = ()) -> Callable[[Command], Command]:
    def decorate(command: Command) -> Command:
        for name, option in reversed(_OPTIONS.items()):
            if name not in without:
                command = option(command)
        return command

    return decorate


def named(given: Iterable[str] = _OPTIONS) -> str:
    """For people: the options that narrow the choice."""
    words = {"enqueued_after": "since", "enqueued_before": "until"}
    return ", ".join(f"--{words.get(name, name)}" for name in given)


def choose(ids: tuple[str, ...], every: bool, given: dict[str, Any]) -> None:
    """Either ids or all that fit; never everything there is by mistake."""
    narrowing = [name for name, value in given.items() if value is not None]
    if ids and every:
        raise click.UsageError("give ids, or --all with filters, not both")
    if ids and narrowing:
        raise click.UsageError(f"{named(narrowing)} goes with --all, not with ids")
    if not ids and not every:
        raise click.UsageError("say which: ids, or --all with filters")
    if every and not narrowing:
        raise click.UsageError(f"--all needs a filter: {named(given)}")
