"""Canceling and deleting jobs, and telling those whom it concerns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from tenure.client.filters import Filters
from tenure.client.pages import live_ids
from tenure.client.patience import persist
from tenure.model.errors import ConfigError, NotPossible
from tenure.model.payloads import clean_text
from tenure.model.states import LIVE, State
from tenure.store import control

if TYPE_CHECKING:
    from tenure.client.session import Session

MOST_WORDS = 100
"""More than so many jobs are not named one by one."""

LONGEST_WORDS = 1000  # characters of a reason or a name


async def cancel(
    session: Session, ids: Iterable[UUID], reason: str | None, by: str | None, states: frozenset[State] | None = None
) -> int:
    """Ends jobs that are live, whatever they wait for. Gives how many there were."""
    reason, by = cleaned(reason), cleaned(by)
    error = "canceled" + (f" by {by}" if by else "") + (f": {reason}" if reason else "")
    done = 0

    async def ask(batch: list[UUID]) -> list[UUID]:
        nonlocal done
        rows = await session.fetch(control.cancel(batch, states=states, error=error, reason=reason, by=by))
        ended = [row for row in rows if row[1]]
        done += len(ended)
        _tell(session, [job_id for job_id, _, ran, _ in ended if ran], [job_id for job_id, _, _, watched in ended if watched])
        return [job_id for job_id, canceled, _, _ in rows if not canceled]

    await persist(ids, ask)
    return done


async def cancel_all(session: Session, filters: Filters, reason: str | None, by: str | None) -> int:
    if filters == Filters():
        raise ConfigError("cancel_all needs a filter; to cancel whatever is live, name all live states in state=")
    states = None if filters.states is None else filters.states & LIVE
    if states is not None and not states:
        raise ConfigError(f"a job that is {' or '.join(sorted(filters.states or ()))} is over and cannot be canceled")
    done = 0
    async for ids in live_ids(session.fetch, filters):
        # Asked for by state: one that has moved on since is not meant any more.
        done += await cancel(session, ids, reason, by, states)
    return done


async def delete(session: Session, ids: Iterable[UUID], *, force: bool) -> int:
    """Removes jobs and all that is kept of them. Gives how many there were."""
    done = 0

    async def ask(batch: list[UUID]) -> list[UUID]:
        nonlocal done
        rows = await session.fetch(control.delete(batch, force=force))
        removed = [row for row in rows if row[1]]
        done += len(removed)
        _tell(session, [job_id for job_id, _, ran, _ in removed if ran], [job_id for job_id, _, _, watched in removed if watched])
        if not force and (running := [job_id for job_id, gone, ran, _ in rows if ran and not gone]):
            told = "is running" if len(running) == 1 else "are running"
            raise NotPossible(running, f"{told}: cancel first and delete then, or delete with force=True")
        return [job_id for job_id, gone, _, _ in rows if not gone]

    await persist(ids, ask)
    return done


def cleaned(text: str | None) -> str | None:
    """What people say, as far as PostgreSQL can keep it."""
    return None if text is None else clean_text(text, LONGEST_WORDS)


def _tell(session: Session, ran: Sequence[UUID], watched: Sequence[UUID]) -> None:
    """Workers check what they run; those who wait look again. Who is not named finds out by looking now and then."""
    for word in [f"gone {job_id}" for job_id in ran] if len(ran) <= MOST_WORDS else ["gone"]:
        session.tell(word)
    for job_id in watched[:MOST_WORDS]:
        session.tell(f"done {job_id}")
