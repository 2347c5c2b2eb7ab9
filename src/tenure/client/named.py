"""Enqueueing by name, for services that do not import the handlers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tenure.client.calls import Call, CallMaker
from tenure.client.options import CALL_OPTIONS, Options, call_options
from tenure.client.runtime import ClientRuntime
from tenure.model.errors import InvalidInput, InvalidPayload
from tenure.model.kinds import KeyScope, Kind
from tenure.model.names import check_name, shown
from tenure.model.options import check_option_names
from tenure.model.payloads import plain_json
from tenure.model.retries import Retry


@dataclass(frozen=True, slots=True)
class UnknownJob:
    """A kind of which this app knows the name only: another service runs it."""

    name: str
    retry: Retry
    queue: str = "default"
    priority: int = 50
    capability: str | None = None
    key_for: KeyScope | None = "forever"


def call_by_name(
    runtime: ClientRuntime, name: str, given: Mapping[str, Any] | None, options: Mapping[str, Any]
) -> tuple[Call[Any], Options]:
    """`given` are the job's arguments by name. Those of a kind that this app knows are checked."""
    check_option_names(options, CALL_OPTIONS, what="enqueue()")
    check_name(name, what="the name of a job")
    checked = call_options(**options, job=name)
    arguments = {} if given is None else given
    if not isinstance(arguments, Mapping):
        raise InvalidInput(name, [f"the input is {shown(given)}: give the arguments by name, {{'user_id': 1}}"])
    if name in runtime.kinds:
        kind = runtime.kinds[name]
        return CallMaker(kind, checked).of_arguments(kind, (), _typed(kind, arguments)), checked
    return CallMaker(UnknownJob(name, runtime.default_retry()), checked).of_input(dict(arguments)), checked


def call_unchecked(name: str, given: Any, options: Mapping[str, Any]) -> Call[Any]:
    """A call that `tenure.enqueue()` takes as it is: any JSON as input, with the defaults of the schema."""
    target = UnknownJob(name, Retry(), key_for=None)
    return CallMaker(target, call_options(**options, job=name)).of_input(given)


def _typed(kind: Kind, arguments: Mapping[str, Any]) -> dict[str, Any]:
    if not arguments:
        return {}
    try:
        text = plain_json(dict(arguments), what=f"the input of job {kind.name!r}")
    except InvalidPayload:
        return dict(arguments)  # typed values: the job's own encoding takes them, or says why not
    return kind.input.decode(text)
