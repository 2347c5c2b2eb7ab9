"""Enqueuing by name, for services that do not import the handlers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Unpack

from tenure.client.calls import Call, CallMaker
from tenure.client.options import CallOptions, Options, call_options
from tenure.client.runtime import ClientRuntime
from tenure.model.errors import InputProblem, InvalidInput, InvalidPayload
from tenure.model.kinds import KeyScope, Kind
from tenure.model.names import check_name, shown
from tenure.model.payloads import plain_json
from tenure.model.published_kind import PublishedKind
from tenure.model.retries import Retry
from tenure.model.routes import Route


@dataclass(frozen=True, slots=True)
class UnknownJob:
    """A kind that this app does not define: another service runs it."""

    name: str
    retry: Retry
    queue: str = "default"
    priority: int = 50
    capability: str | None = None
    key_for: KeyScope | None = "forever"
    expires: timedelta | None = None

    @staticmethod
    def of_published(kind: PublishedKind) -> UnknownJob:
        """With what its workers have published."""
        return UnknownJob(
            kind.name,
            Retry(max_attempts=kind.max_attempts),
            queue=kind.queue,
            priority=kind.priority,
            capability=kind.capability,
            key_for=kind.key_for,
            expires=None if kind.expires is None else timedelta(seconds=kind.expires),
        )


def call_by_name(
    runtime: ClientRuntime, name: str, given: Mapping[str, Any] | None, options: CallOptions
) -> tuple[Call[Any], Options]:
    """`given` holds the job's arguments by name. They are checked if this app defines the kind."""
    check_name(name, what="the name of a job")
    checked = call_options(name, "enqueue()", **options)
    arguments = {} if given is None else given
    if not isinstance(arguments, Mapping):
        what = f"the input is {shown(given)}: give the arguments by name, such as {{'user_id': 1}}"
        raise InvalidInput(name, [InputProblem(what)])
    if name in runtime.kinds:
        kind = runtime.kinds[name]
        return CallMaker(kind, checked).of_arguments(kind, (), _typed(kind, arguments)), checked
    route = runtime.route(name) or Route(name, None, None)
    target = UnknownJob(
        name,
        runtime.default_retry(),
        queue=route.queue or "default",
        priority=50 if route.priority is None else route.priority,
    )
    return CallMaker(target, checked).of_input(dict(arguments)), checked


def call_unchecked(name: str, given: Any, **options: Unpack[CallOptions]) -> Call[Any]:
    """A call that `tenure.enqueue()` takes as it is: any JSON as input, with the defaults of the schema."""
    target = UnknownJob(name, Retry(), key_for=None)
    return CallMaker(target, call_options(name, "enqueue()", **options)).of_input(given)


def _typed(kind: Kind, arguments: Mapping[str, Any]) -> dict[str, Any]:
    if not arguments:
        return {}
    try:
        text = plain_json(dict(arguments), what=f"the input of job {kind.name!r}")
    except InvalidPayload:
        return dict(arguments)  # typed values: the job's own codec encodes or refuses them
    return kind.input.decode(text)
