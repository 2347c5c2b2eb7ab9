"""The members of a group, and the job that represents it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from tenure.client.calls import Call, CallFields, CallMaker
from tenure.client.named import UnknownJob
from tenure.client.options import HasId, Options
from tenure.model.errors import ConfigError
from tenure.model.names import GROUP_KIND
from tenure.model.retries import Retry


@dataclass(frozen=True, slots=True)
class Members:
    calls: list[Call[Any]]
    """New jobs. They are marked from the start: a job waits for them."""
    ids: tuple[str, ...]
    """Of all members, in their order."""


class Marking:
    """Calls as members of a group."""

    def __init__(self) -> None:
        self._marked: dict[int, tuple[CallFields, CallFields]] = {}

    def mark(self, call: Call[Any]) -> Call[Any]:
        if call.key is not None:
            raise ConfigError(
                f"a call of {call.kind!r} with a key cannot be a member of a group, because it may return an earlier job: "
                "enqueue it first, and pass its handle"
            )
        # Nearly all calls share their fields, which are rendered once.
        _, marked = self._marked.setdefault(id(call.fields), (call.fields, replace(call.fields, dependants=True)))
        return call._replace(fields=marked)


def members_of(given: Iterable[Call[Any] | HasId]) -> Members:
    marking, calls, ids = Marking(), [], []
    if isinstance(given, Call):  # a tuple, so it could be iterated
        raise ConfigError("gather() got a single call: give a list of calls")
    for one in given:
        if isinstance(one, Call):
            calls.append(marking.mark(one))
        elif not hasattr(one, "id"):
            raise ConfigError(
                f"gather() got {one!r:.100}, which is neither a call nor a handle: write `job.call(...)` for each job"
            )
        ids.append(str(one.id))
    return Members(calls, tuple(ids))


def group_call(ids: tuple[str, ...]) -> Call[Any]:
    """A job that waits for these. Without any it ends at once."""
    return _group_call(ids, None, open=None if ids else False)


def open_group_call(key: str | None) -> Call[Any]:
    """A job that waits until it is closed, and for what is added to it before."""
    return _group_call((), key, open=True)


def _group_call(ids: tuple[str, ...], key: str | None, *, open: bool | None) -> Call[Any]:  # noqa: A002
    call = CallMaker(UnknownJob(GROUP_KIND, Retry()), Options(key=key)).of_input({})
    return call._replace(fields=replace(call.fields, after=ids, on_failure="run", open=open))
