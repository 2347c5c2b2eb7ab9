"""The options that select jobs, shared by list, cancel and replay. Their values are the client's filters."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import click

from tenure.cli import param_types
from tenure.model.states import State

Command = TypeVar("Command", bound=Callable[..., Any])


def _joined(_: click.Context, __: click.Parameter, given: Iterable[frozenset[State]]) -> list[State] | None:
    return sorted(frozenset().union(*given)) or None


_OPTIONS = {
    "state": click.option(
        "--state",
        "-s",
        type=param_types.STATES,
        multiple=True,
        callback=_joined,
        metavar="STATE",
        help="One or several, separated by commas.",
    ),
    "kind": click.option("--kind", "-k", help="The job's name."),
    "queue": click.option("--queue", "-q"),
    "priority": click.option("--priority", type=param_types.PRIORITY, help="0 to 100, or a name such as high."),
    "capability": click.option("--capability", help="The capability that the job requires."),
    "key": click.option("--key", help="The idempotency key."),
    "parent": click.option("--parent", type=click.UUID, metavar="ID", help="The job that enqueued them."),
    "enqueued_after": click.option(
        "--since", "enqueued_after", type=param_types.MOMENT, help="Enqueued since: 2h, 1d, or a time such as 2026-01-31T18:30."
    ),
    "enqueued_before": click.option("--until", "enqueued_before", type=param_types.MOMENT, help="Enqueued before this time."),
    "input": click.option("--input", type=param_types.JSON_OBJECT, help="Values that the job's input contains."),
}


def filters(*, without: Iterable[str] = ()) -> Callable[[Command], Command]:
    def decorate(command: Command) -> Command:
        for name, option in reversed(_OPTIONS.items()):
            if name not in without:
                command = option(command)
        return command

    return decorate


def option_names(given: Iterable[str] = _OPTIONS) -> str:
    """The options as they are typed, for messages."""
    words = {"enqueued_after": "since", "enqueued_before": "until"}
    return ", ".join(f"--{words.get(name, name)}" for name in given)


def check_selection(ids: tuple[str, ...], every: bool, given: dict[str, Any]) -> None:
    """Requires either ids, or --all with a filter, so that no command affects all jobs by mistake."""
    narrowing = [name for name, value in given.items() if value is not None]
    if ids and every:
        raise click.UsageError("give ids, or --all with filters, not both")
    if ids and narrowing:
        raise click.UsageError(f"{option_names(narrowing)} goes with --all, not with ids")
    if not ids and not every:
        raise click.UsageError("give ids, or --all with filters")
    if every and not narrowing:
        raise click.UsageError(f"--all needs a filter: {option_names(given)}")
