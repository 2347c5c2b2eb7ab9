"""Deletes chains with all their links."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from tenure.client.lock_retry import BATCH, LockRetry, batches
from tenure.flow.access import Access, wakeups_of
from tenure.model.errors import NotPossible
from tenure.model.event_bus import Events
from tenure.model.events import JobDeleted
from tenure.store import chains, jobs

MOST_LINKS = 100_000
"""Links of one chain that one statement finds; the next one finds the others."""


async def delete(access: Access, given: Sequence[UUID], *, cascade: bool, events: Events) -> int:
    """Returns how many of the given chains existed."""
    ids = [row.chain_id for row in await access.fetch(jobs.find_all(given))]
    wanted = list(dict.fromkeys([*ids, *given]))  # a chain is also known by the id of a link that is gone
    dependants = await access.fetch(chains.find_dependants(wanted))
    if dependants and not cascade:
        waiting = ", ".join(str(row.job_id) for row in dependants[:3])
        raise NotPossible(
            given,
            f"cannot be deleted, because other jobs wait for it ({waiting}): cancel these first, or delete with cascade=True",
        )
    doomed = list(dict.fromkeys([*wanted, *(row.chain_id for row in dependants)]))
    existed: set[UUID] = set()
    for batch in batches(doomed):
        existed |= await _delete_links(access, batch, events)
    return len(existed & set(wanted))


async def _delete_links(access: Access, chain_ids: list[UUID], events: Events) -> set[UUID]:
    """Until no link is left: a run may add one while the others are deleted, and a row may be locked."""
    existed: set[UUID] = set()
    retry = LockRetry()
    while links := await access.fetch(chains.find_links(chain_ids, most=MOST_LINKS)):
        existed |= {link.chain_id for link in links}
        ids = [link.id for link in links]
        removed = 0
        for start in range(0, len(ids), BATCH):
            rows = [row for row in await access.fetch(jobs.delete(ids[start : start + BATCH], force=True)) if row.done]
            removed += len(rows)
            await access.notify(wakeups_of(rows))
            if events.wants(JobDeleted):
                for row in rows:
                    events.emit(JobDeleted(job_id=row.id, kind=row.kind))
        if removed < len(ids):
            await access.pause(retry.pause(ids))
    return existed
