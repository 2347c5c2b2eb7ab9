"""Lists of jobs, newest first, a page at a time.

Live and finished jobs are in two tables. Each is read by the index that fits the filters best, up to a bounded number of rows;
then both results are merged by id. So a page is never slow, but it may be short although there are more jobs.

Live jobs are read first: a job that finishes in between is then found twice, never missed.
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
    """Pass it as `after` for the next page. A short or even empty page can have a next one."""


@dataclass(frozen=True, slots=True)
class Look:
    """What was found in one table."""

    ids: list[UUID]
    """Newest first."""
    edge: UUID | None = None
    """Everything down to this id, inclusive, was read. None: nothing is left."""


NOTHING = Look([])


async def list_page(fetch: Fetch, filters: Filters, limit: int, after: str | None) -> Page:
    before = _before(after)
    looks = [await look_live(fetch, filters, before, limit + 1), await look_finished(fetch, filters, before, limit + 1)]
    ids, edge = merge(looks, limit, filters.span[0])
    found = [JobStatus.from_row(row) for row in await fetch(jobs.find_all(ids))] if ids else []
    # A job may have changed its state between the two statements: then it no longer matches.
    fitting = [job for job in found if filters.states is None or job.state in filters.states]
    return Page(fitting, None if edge is None else str(edge))


def merge(looks: Sequence[Look], limit: int, floor: UUID = FIRST_ID) -> tuple[list[UUID], UUID | None]:
    """The newest ids, as far down as every table was read, and where to continue. None: nothing is left above the floor."""
    edge = max((look.edge for look in looks if look.edge is not None and look.edge > floor), default=None)
    known = {job_id for look in looks for job_id in look.ids if edge is None or job_id >= edge}
    ids = sorted(known, reverse=True)
    return ids[:limit], ids[limit - 1] if len(ids) > limit else edge


async def live_ids(fetch: Fetch, filters: Filters) -> AsyncIterator[list[UUID]]:
    """The ids of the matching live jobs, newest first, in batches. Jobs enqueued meanwhile are newer, and not included."""
    async for ids in matching_ids(fetch, filters, LARGEST_PAGE):
        if ids:
            yield ids


async def matching_ids(fetch: Fetch, filters: Filters, size: int, *, finished: bool = False) -> AsyncIterator[list[UUID]]:
    """The same, at most `size` at a time; also of finished jobs, if wanted. A batch can be empty: a caller with a time limit must
    be asked between statements, because none of the jobs may match."""
    before: UUID | None = None
    floor, _ = filters.span
    while True:
        looks = [await look_live(fetch, filters, before, size + 1)]
        if finished:
            looks.append(await look_finished(fetch, filters, before, size + 1))
        ids, before = merge(looks, size, floor)
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
        return await _look(fetch, lists.not_completed(values))
    return await _walk_finished(fetch, filters, values)


async def _of_kinds(fetch: Fetch, kind: str | None, which: Query[str], of: Callable[[list[str]], Query[ListRow]]) -> Look:
    """Reads the given kind, or first finds the existing kinds."""
    kinds = [kind] if kind is not None else await fetch(which)
    return await _look(fetch, of(kinds)) if kinds else NOTHING


async def _walk_finished(fetch: Fetch, filters: Filters, values: lists.Values) -> Look:
    """By the kind, or by the kinds of the queue if they are few: then jobs of other kinds need not be read."""
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
        raise ConfigError(
            f"after is {after!r}, which is not a cursor: give the `next` of a page, or leave it out to start at the newest job"
        ) from None
