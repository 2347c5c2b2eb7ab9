"""Lists of jobs, newest first, a page at a time.

Live and finished jobs stand in two tables. Each is asked by the index that serves the filters best, and looks at a bounded
number of rows; then both are merged by id. So a page is never slow, but may be short while there is more.

The live ones are asked first: a job that finishes in between is then seen twice, never missed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

from tenure.client.filters import FIRST_ID, Filters
from tenure.client.status import JobStatus
from tenure.model.errors import ConfigError
from tenure.model.states import FINISHED, HELD, LIVE, State
from tenure.store import jobs, lists
from tenure.store.lists import ListRow
from tenure.store.query import Fetch, Query

LARGEST_PAGE = 1000


@dataclass(frozen=True, slots=True)
class Page:
    jobs: list[JobStatus]
    next: str | None
    """Give it as `after` for the next page. A page may be short, even empty, and yet have a next one."""


@dataclass(frozen=True, slots=True)
class Look:
    """What one table told."""

    ids: list[UUID]
    """Newest first."""
    edge: UUID | None = None
    """Down to this id, itself included, everything was looked at; None: nothing is left."""


NOTHING = Look([])


async def list_page(fetch: Fetch, filters: Filters, limit: int, after: str | None) -> Page:
    before = _before(after)
    looks = [await look_live(fetch, filters, before, limit + 1), await look_finished(fetch, filters, before, limit + 1)]
    ids, edge = merge(looks, limit, filters.span[0])
    found = [JobStatus.from_row(row) for row in await fetch(jobs.find_all(ids))] if ids else []
    # A job may have moved on between the two looks: then it does not fit any more.
    fitting = [job for job in found if filters.states is None or job.state in filters.states]
    return Page(fitting, None if edge is None else str(edge))


def merge(looks: Sequence[Look], limit: int, floor: UUID = FIRST_ID) -> tuple[list[UUID], UUID | None]:
    """The newest ids of all, as far down as every table was looked at, and where to go on, if not at the floor already."""
    edge = max((look.edge for look in looks if look.edge is not None and look.edge > floor), default=None)
    known = {job_id for look in looks for job_id in look.ids if edge is None or job_id >= edge}
    ids = sorted(known, reverse=True)
    return ids[:limit], ids[limit - 1] if len(ids) > limit else edge


async def live_ids(fetch: Fetch, filters: Filters) -> AsyncIterator[list[UUID]]:
    """The ids of the live jobs that fit, newest first, some at a time. Those that come in meanwhile are newer: not among them."""
    before: UUID | None = None
    floor, _ = filters.span
    while True:
        ids, before = merge([await look_live(fetch, filters, before, LARGEST_PAGE + 1)], LARGEST_PAGE, floor)
        if ids:
            yield ids
        if before is None:
            return


async def look_live(fetch: Fetch, filters: Filters, before: UUID | None, limit: int) -> Look:
    states = None if filters.states is None else filters.states & LIVE
    if states is not None and not states:
        return NOTHING
    values = _values(filters, states, before, limit)
    if filters.key is not None:
        return await _of_kinds(fetch, filters.kind, lists.kinds_with_keys(), lambda kinds: lists.keyed(values, kinds))
    if filters.parent is not None:
        return await _look(fetch, lists.children(values))
    if states == frozenset({State.DEAD_LETTER}):
        return await _of_kinds(fetch, filters.kind, lists.kinds_of_dead(), lambda kinds: lists.dead(values, kinds))
    if states is not None and states <= HELD:
        return await _look(fetch, lists.held(values))
    return await _look(fetch, lists.live(values))


async def look_finished(fetch: Fetch, filters: Filters, before: UUID | None, limit: int) -> Look:
    states = None if filters.states is None else filters.states & FINISHED
    if states is not None and not states:
        return NOTHING
    values = _values(filters, states, before, limit)
    if filters.key is not None:
        return await _of_kinds(fetch, filters.kind, lists.kinds_of_finished(), lambda kinds: lists.finished_keyed(values, kinds))
    if filters.parent is not None:
        return await _look(fetch, lists.finished_children(values))
    if states is not None and State.COMPLETED not in states:
        return await _look(fetch, lists.unhappy(values))
    return await _walk_finished(fetch, filters, values)


async def _of_kinds(fetch: Fetch, kind: str | None, which: Query[str], of: Callable[[list[str]], Query[ListRow]]) -> Look:
    """Asks for one kind, or first for the kinds there are."""
    kinds = [kind] if kind is not None else await fetch(which)
    return await _look(fetch, of(kinds)) if kinds else NOTHING


async def _walk_finished(fetch: Fetch, filters: Filters, values: lists.Values) -> Look:
    """By the kind, or by the kinds of the queue where they are few: then what others did need not be walked over."""
    if filters.kind is not None:
        kinds = [filters.kind]
    elif filters.queue is not None:
        kinds = await fetch(lists.kinds_of_queue(filters.queue))
    else:
        return await _look(fetch, lists.finished(values))
    if not kinds:
        return NOTHING
    few = len(kinds) <= lists.MOST_KINDS
    return await _look(fetch, lists.finished_kinds(values, kinds) if few else lists.finished(values))


async def _look(fetch: Fetch, query: Query[ListRow]) -> Look:
    [row] = await fetch(query)
    return Look(row.ids, row.edge)


def _values(filters: Filters, states: frozenset[State] | None, before: UUID | None, limit: int) -> dict[str, object]:
    floor, ceiling = filters.span
    top = ceiling if before is None else min(before, ceiling)
    return {**filters.values(states), "before": str(top), "floor": str(floor), "limit": limit}


def check_limit(limit: int) -> int:
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= LARGEST_PAGE:
        raise ConfigError(f"limit is {limit!r}, but must be from 1 to {LARGEST_PAGE}: use iterate() to see them all")
    return limit


def _before(after: str | None) -> UUID | None:
    if after is None:
        return None
    try:
        return UUID(after)
    except (ValueError, AttributeError, TypeError):
        raise ConfigError(f"after is {after!r}, which is no cursor: give a page's next, or leave it out to begin anew") from None
