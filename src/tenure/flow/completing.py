"""Completes a chain without a worker."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

from tenure.client.lock_retry import LockRetry
from tenure.flow.access import Access, wakeups_of
from tenure.model.errors import JobNotFound, NotPossible
from tenure.model.event_bus import Events
from tenure.model.events import JobCompleted
from tenure.model.kinds import Registry
from tenure.model.payloads import plain_json
from tenure.model.states import State
from tenure.store import chains, jobs
from tenure.store.jobs import JobRow


async def _any_link(_: JobRow) -> None:
    """Every link may be completed."""


async def complete(
    access: Access,
    kinds: Registry,
    given: UUID,
    output: Any,
    *,
    by: str | None,
    events: Events,
    check: Callable[[JobRow], Awaitable[None]] = _any_link,
) -> UUID:
    """Ends the live link. If another one takes its place meanwhile, or its row is locked, it is tried again. `check` raises for a
    link that the caller may not complete, or not with this output: it is asked about the very one that is."""
    retry = LockRetry()
    while True:
        link = await _live_link(access, given)
        await check(link)
        rows = await access.fetch(chains.complete({link.id: _encoded(kinds, link.kind, output)}, by=by))
        if rows and rows[0].done:
            await access.notify(wakeups_of(rows))
            if events.wants(JobCompleted):
                events.emit(JobCompleted(job_id=link.id, kind=link.kind, by=by))
            return link.id
        await access.pause(retry.pause([link.id]))


async def _live_link(access: Access, given: UUID) -> JobRow:
    found = await access.fetch(jobs.find(str(given)))
    chain_id = found[0].chain_id if found else given
    [tail] = await access.fetch(chains.find_tail(str(chain_id)))
    rows = await access.fetch(jobs.find(str(tail.id))) if tail.id is not None else []
    if not rows:
        raise JobNotFound(given)
    if State(rows[0].state).finished:
        raise NotPossible([given], f"belongs to a chain that has ended ({rows[0].state}): complete live chains only")
    return rows[0]


def _encoded(kinds: Registry, kind: str, output: Any) -> str:
    """As its handler would return it, if this app defines the kind of the link."""
    if kind in kinds:
        return kinds[kind].output.encode(output).decode()
    return plain_json(output, what=f"the output of job {kind!r}")
