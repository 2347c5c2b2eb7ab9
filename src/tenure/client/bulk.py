"""Actions on all jobs that match a filter, in batches. A job of the kind `tenure.bulk` carries them out, see `builtin`."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, cast
from uuid import UUID

from tenure.client import cancel_delete, replays
from tenure.client.filters import Filters, FilterWords
from tenure.client.pages import matching_ids
from tenure.client.unchanged import UNCHANGED
from tenure.model.errors import ConfigError, JobNotFound, NotPossible
from tenure.model.names import RESERVED, is_builtin
from tenure.model.states import HELD, LIVE, State
from tenure.store import lists

if TYPE_CHECKING:
    from tenure.client.runtime import ClientRuntime
    from tenure.store.query import Fetch

BULK = f"{RESERVED}bulk"
"""The kind of the job that carries out a bulk action."""

BATCH = 500

Action = Literal["cancel", "retry", "replay", "delete"]

ELIGIBLE: dict[Action, frozenset[State]] = {
    "cancel": LIVE,
    "retry": frozenset({State.RETRY, State.SCHEDULED}),
    "replay": frozenset({State.DEAD_LETTER}),
    "delete": frozenset(State) - HELD,
}
"""The states that an action is for."""


OPERATOR_ACTIONS: frozenset[Action] = frozenset(ELIGIBLE) - {"delete"}
"""Those that need no more than the scope `operate`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkAction:
    action: Action
    filters: Filters
    reason: str | None = None
    by: str | None = None

    def __post_init__(self) -> None:
        """Raises `ConfigError` for a filter that matches everything, or nothing that the action is for."""
        if self.action not in ELIGIBLE:
            raise ConfigError(f"{self.action!r} is not a bulk action: give one of {', '.join(ELIGIBLE)}")
        if self.filters == Filters():
            raise ConfigError("a bulk action needs a filter: give at least one field", option="filter")
        if is_builtin(self.filters.kind or ""):
            raise ConfigError(
                f"jobs of the built-in kind {self.filters.kind!r} are not changed by filter: name them by id", option="kind"
            )
        eligible = ELIGIBLE[self.action]
        states = eligible if self.filters.states is None else self.filters.states & eligible
        if not states:
            raise ConfigError(
                f"{self.action} is for jobs that are {', '.join(sorted(eligible))}: change the filter by state", option="state"
            )
        object.__setattr__(self, "filters", replace(self.filters, states=states))

    async def count(self, fetch: Fetch, most: int, within: float) -> tuple[int, bool]:
        """How many jobs it would change, and whether there may be more: counting stops at `most`, or after `within` seconds."""
        deadline, matched = time.monotonic() + within, 0
        async for ids in self.batches(fetch, 2 * BATCH):
            matched += len(ids)
            if matched >= most or time.monotonic() > deadline:
                return min(matched, most), True
        return matched, False

    async def carry_out(self, runtime: ClientRuntime) -> AsyncIterator[tuple[int, int]]:
        """Yields, after each batch, how many jobs have matched and how many were changed. Jobs that have changed their state
        since they were found are left alone. It may be repeated: changed jobs do not match any more."""
        matched = changed = 0
        async for ids in self.batches(runtime.session().fetch, BATCH):
            matched += len(ids)
            changed += await self.change(runtime, ids) if ids else 0
            yield matched, changed

    async def change(self, runtime: ClientRuntime, ids: Sequence[UUID]) -> int:
        """Of these jobs, those that are in one of the states. Returns how many were changed."""
        return await _ACTIONS[self.action](runtime, ids, self)

    async def batches(self, fetch: Fetch, size: int) -> AsyncIterator[list[UUID]]:
        """The ids of the jobs that match, newest first; a batch can be empty. Without jobs of built-in kinds: a bulk action must
        not stop another one or itself, nor run one again that its own caller could not have started."""
        async for ids in matching_ids(fetch, self.filters, size, finished=self.action == "delete"):
            builtin = set(await fetch(lists.builtin(ids, RESERVED))) if ids else set()
            yield [job_id for job_id in ids if job_id not in builtin]


def filters_of_json(given: Mapping[str, Any]) -> Filters:
    """From the words of a filter, with times as text."""
    times = {name: datetime.fromisoformat(given[name]) for name in ("enqueued_after", "enqueued_before") if name in given}
    return Filters.of(**cast("FilterWords", {**given, **times}))


async def _cancel(runtime: ClientRuntime, ids: Sequence[UUID], what: BulkAction) -> int:
    return await cancel_delete.cancel(runtime, ids, what.reason, what.by, what.filters.states)


async def _retry(runtime: ClientRuntime, ids: Sequence[UUID], what: BulkAction) -> int:
    done = 0
    for job_id in ids:
        with suppress(NotPossible, JobNotFound):
            await replays.retry(runtime, job_id, what.by)
            done += 1
    return done


async def _replay(runtime: ClientRuntime, ids: Sequence[UUID], what: BulkAction) -> int:
    done, taken = await replays.replay(runtime, ids, new_input=UNCHANGED, priority=None, by=what.by)
    if taken:
        replays.warn_of_taken(taken)
    return done


async def _delete(runtime: ClientRuntime, ids: Sequence[UUID], what: BulkAction) -> int:  # noqa: ARG001
    done = 0
    try:
        done = await cancel_delete.delete(runtime, ids, force=False)
    except NotPossible:  # some of them have started to run meanwhile
        for job_id in ids:
            with suppress(NotPossible):
                done += await cancel_delete.delete(runtime, [job_id], force=False)
    return done


_ACTIONS: dict[Action, Callable[[ClientRuntime, Sequence[UUID], BulkAction], Awaitable[int]]] = {
    "cancel": _cancel,
    "retry": _retry,
    "replay": _replay,
    "delete": _delete,
}
