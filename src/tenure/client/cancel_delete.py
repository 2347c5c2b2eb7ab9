"""Canceling and deleting jobs, and notifying their workers and waiters."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from tenure.client.filters import Filters
from tenure.client.lock_retry import LockRetry, Refusals, batches, persist
from tenure.client.pages import live_ids
from tenure.model.errors import ConfigError, JobNotFound, NotPossible
from tenure.model.event_bus import Events
from tenure.model.events import JobCanceled, JobDeleted
from tenure.model.payloads import clean_text
from tenure.model.states import LIVE, State
from tenure.model.wakeup import Wakeup
from tenure.store import jobs, queues
from tenure.store.jobs import EndedRow
from tenure.store.query import Fetch, Query

if TYPE_CHECKING:
    from tenure.client.runtime import ClientRuntime

MOST_NAMED = 100
"""At most this many jobs are named in notifications."""

LONGEST_WORDS = 1000  # characters of a reason or a name


class Cancellation:
    """Who cancels and why, and how many jobs were canceled."""

    def __init__(
        self, events: Events, reason: str | None, by: str | None, states: frozenset[State] | None = None, *, force: bool = False
    ) -> None:
        self._events, self._force = events, force
        self._reason, self._by, self._states = cleaned(reason), cleaned(by), states
        self.done = 0

    def query(self, batch: Iterable[UUID]) -> Query[EndedRow]:
        error = "canceled" + (f" by {self._by}" if self._by else "") + (f": {self._reason}" if self._reason else "")
        return jobs.cancel(batch, states=self._states, error=error, reason=self._reason, by=self._by, force=self._force)

    def take(self, answers: Sequence[EndedRow]) -> tuple[list[UUID], list[Wakeup]]:
        """Returns the jobs to try again, and the notifications to send."""
        ended = [row for row in answers if row.done]
        self.done += len(ended)
        if self._events.wants(JobCanceled):
            for row in ended:
                self._events.emit(JobCanceled(job_id=row.id, kind=row.kind, reason=self._reason, by=self._by, ran=row.ran))
        return [row.id for row in answers if not row.done], _wakeups(ended)


async def cancel(
    runtime: ClientRuntime,
    ids: Sequence[UUID],
    reason: str | None,
    by: str | None,
    states: frozenset[State] | None = None,
    *,
    force: bool = False,
) -> int:
    """Cancels live jobs in any state. Returns how many."""
    cancellation, refusals = Cancellation(runtime.events, reason, by, states, force=force), Refusals()
    await _cancel(runtime, ids, cancellation, refusals)
    refusals.check(cancellation.done)
    return cancellation.done


async def _cancel(runtime: ClientRuntime, ids: Sequence[UUID], cancellation: Cancellation, refusals: Refusals) -> None:
    session = runtime.session()

    async def ask(batch: list[UUID]) -> list[UUID]:
        left, wakeups = cancellation.take(await session.fetch(cancellation.query(batch)))
        for wakeup in wakeups:
            session.notify(wakeup)
        return left

    await refusals.persist(ids, ask)


async def cancel_borrowed(
    runtime: ClientRuntime, conn: object, ids: Sequence[UUID], reason: str | None, by: str | None, *, force: bool = False
) -> int:
    """The same in the caller's transaction: listeners are notified when it commits, if the settings allow it."""
    from tenure.client.enqueue_batches import borrow_checked  # noqa: PLC0415 - imports the driver

    database, borrowed = runtime.database(), await borrow_checked(runtime, conn)
    cancellation = Cancellation(runtime.events, reason, by, force=force)

    async def ask(batch: list[UUID]) -> list[UUID]:
        left, wakeups = cancellation.take(await borrowed.fetch(cancellation.query(batch), database.schema))
        if wakeups and runtime.notifies_in_transactions():
            await borrowed.fetch(queues.notify(database.channel, wakeups), database.schema)
        return left

    await persist(ids, ask)
    if not cancellation.done:
        _check_found(await borrowed.fetch(jobs.find_all(ids), database.schema), ids)
    return cancellation.done


def cancel_borrowed_sync(
    runtime: ClientRuntime, conn: object, ids: Sequence[UUID], reason: str | None, by: str | None, *, force: bool = False
) -> int:
    from tenure.client.enqueue_batches import borrow_checked_sync  # noqa: PLC0415 - imports the driver

    database, borrowed = runtime.database(), borrow_checked_sync(runtime, conn)
    cancellation = Cancellation(runtime.events, reason, by, force=force)
    for batch in batches(dict.fromkeys(ids)):
        retry, left = LockRetry(), batch
        while True:
            left, wakeups = cancellation.take(borrowed.fetch_sync(cancellation.query(left), database.schema))
            if wakeups and runtime.notifies_in_transactions():
                borrowed.fetch_sync(queues.notify(database.channel, wakeups), database.schema)
            if not left:
                break
            time.sleep(retry.pause(left))
    if not cancellation.done:
        _check_found(borrowed.fetch_sync(jobs.find_all(ids), database.schema), ids)
    return cancellation.done


async def cancel_all(runtime: ClientRuntime, filters: Filters, reason: str | None, by: str | None) -> int:
    if filters == Filters():
        raise ConfigError("cancel_all needs a filter; to cancel all live jobs, name all live states in state=")
    states = None if filters.states is None else filters.states & LIVE
    if states is not None and not states:
        raise ConfigError(f"a job that is {' or '.join(sorted(filters.states or ()))} is over and cannot be canceled")
    # With a filter by state: a job that has changed its state since is left alone.
    cancellation, refusals = Cancellation(runtime.events, reason, by, states), Refusals()
    async for ids in live_ids(runtime.session().fetch, filters):
        await _cancel(runtime, ids, cancellation, refusals)
        if refusals.stopped:
            break
    refusals.check(cancellation.done)
    return cancellation.done


async def delete(runtime: ClientRuntime, ids: Iterable[UUID], *, force: bool) -> int:
    """Deletes jobs and everything stored about them. Returns how many."""
    session, done, refusals = runtime.session(), 0, Refusals()

    async def ask(batch: list[UUID]) -> list[UUID]:
        nonlocal done
        answers = await session.fetch(jobs.delete(batch, force=force))
        removed = [row for row in answers if row.done]
        done += len(removed)
        for wakeup in _wakeups(removed):
            session.notify(wakeup)
        if runtime.events.wants(JobDeleted):
            for row in removed:
                runtime.events.emit(JobDeleted(job_id=row.id, kind=row.kind))
        if not force and (running := [row.id for row in answers if row.ran and not row.done]):
            verb = "is running" if len(running) == 1 else "are running"
            raise NotPossible(running, f"{verb}: cancel first and then delete, or delete with force=True")
        return [row.id for row in answers if not row.done]

    await refusals.persist(ids, ask)
    refusals.check(done)
    return done


async def check_known(fetch: Fetch, ids: Sequence[UUID]) -> None:
    """Raises `JobNotFound` if none of them exists. Canceling a job that is over is not an error."""
    _check_found(await fetch(jobs.find_all(ids)), ids)


def _check_found(rows: Sequence[object], ids: Sequence[UUID]) -> None:
    if ids and not rows:
        raise JobNotFound(ids[0])


def cleaned(text: str | None) -> str | None:
    """Text given by a user, as far as PostgreSQL can store it."""
    return None if text is None else clean_text(text, LONGEST_WORDS)


def _wakeups(ended: Sequence[EndedRow]) -> list[Wakeup]:
    """Workers check the jobs they run; waiters read the job again. Jobs that are not named are noticed by polling."""
    ran = [row.id for row in ended if row.ran]
    watched = [row.id for row in ended if row.watched][:MOST_NAMED]
    more = [Wakeup.new_jobs(queue) for queue in {row.undoing for row in ended if row.undoing is not None}]
    if any(row.dependants for row in ended):
        more.append(Wakeup.chain_ended())
    return Wakeup.jobs_lost(ran, at_most=MOST_NAMED) + [Wakeup.job_ended(job_id) for job_id in watched] + more
