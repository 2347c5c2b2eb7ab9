"""How calls reach PostgreSQL: together with those of other tasks, in bulk, or in a transaction of the caller's.

Concurrent enqueues share a statement: an idle client sends a call at once; calls that arrive while a statement is under way are
sent together in the next one. This module imports the driver.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from uuid import UUID

from tenure.client.calls import Call, plain_job, to_json
from tenure.client.reading import repeat_while_away
from tenure.client.runtime import ClientRuntime
from tenure.model.current import current_run
from tenure.model.errors import InvalidPayload, LeaseLost, StoreUnavailable, TenureError
from tenure.model.wakeup import Wakeup
from tenure.periodic import backoff
from tenure.store import jobs, queues
from tenure.store.borrowed import Borrowed, borrow
from tenure.store.borrowed.identity import check_database, check_database_sync
from tenure.store.faults import Refused
from tenure.store.groups import send_or_halve
from tenure.store.jobs import ExistingJobRow
from tenure.store.link import Link
from tenure.store.query import Query
from tenure.store.target import DatabaseTarget

LARGEST_GROUP = 1000  # jobs in a statement

STALE_PARENT = "P0T01"  # the SQLSTATE with which tenure.enqueue() refuses a parent that has lost its claim

ExistingJobs = dict[str, tuple[UUID, bool]]
"""By the id of a call: the earlier job that has its key, and whether the input of that job differs."""


def existing_in(rows: Iterable[ExistingJobRow]) -> ExistingJobs:
    """A call whose job exists under its own id was written by an earlier try that got no answer."""
    return {row.requested_id: (UUID(row.id), row.differs) for row in rows if row.id != row.requested_id}


def explained(error: Refused) -> TenureError:
    """The error for a caller whose job PostgreSQL refuses."""
    run = current_run.get()
    if error.sqlstate == STALE_PARENT and run is not None:
        return LeaseLost(UUID(run.job_id), "taken_by_another_worker")
    return InvalidPayload(f"PostgreSQL refuses the job: {error}")


def out_of_time(within: float, error: BaseException | None) -> StoreUnavailable:
    """The last try may have been committed, because its answer did not arrive."""
    cause = " ".join(str(error or "it did not answer").removeprefix("PostgreSQL cannot be reached: ").split())
    return StoreUnavailable(
        f"PostgreSQL did not confirm the job within {within:g} s ({cause}): it is away, slow, or waits for a lock on a table of "
        "Tenure. Whether the job was enqueued is not known: repeat the call with a key to be sure that there is one"
    )


def writing(calls: Sequence[Call[Any]], *, again: bool = False) -> Query[ExistingJobRow]:
    """The statement that writes these calls. `again`: an earlier one may have written them, and got no answer."""
    job = None if again else plain_job(calls)
    return jobs.enqueue(to_json(calls), again=again) if job is None else jobs.enqueue_one(job)


# Calls of concurrent tasks


@dataclass(slots=True, eq=False)
class Batch:
    """The calls of one enqueue: all of them are written, or none."""

    calls: list[Call[Any]]
    wakeups: Iterable[Wakeup]
    """Whom to notify when they are written."""
    within: float
    """Seconds for which the caller waits."""
    deadline: float
    """When that is over, by the loop's clock."""
    done: asyncio.Future[ExistingJobs]
    error: StoreUnavailable | None = None
    """The error of the last try."""


class Enqueuer:
    def __init__(self, link: Link, notify: Callable[[Wakeup], None]) -> None:
        self._link = link
        self._notify = notify
        self._waiting: list[Batch] = []
        self._unanswered: set[Batch] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._writer: asyncio.Task[None] | None = None

    async def enqueue(self, calls: list[Call[Any]], wakeups: Iterable[Wakeup], within: float) -> ExistingJobs:
        """Returns when the jobs are durable. Cancelling one caller does not affect the others.

        While PostgreSQL is away the jobs are sent again, for `within` seconds.
        """
        loop = asyncio.get_running_loop()
        batch = Batch(calls, wakeups, within, loop.time() + within, loop.create_future())
        self._waiting.append(batch)
        self._unanswered.add(batch)
        # One timer for all callers: most of them need none, and a timer each would cost a fifth of the whole call.
        if self._timer is None or batch.deadline < self._timer.when():
            self._set_timer(loop, batch.deadline)
        if self._writer is None:
            self._writer = loop.create_task(self._write_all())
        try:
            return await batch.done
        finally:
            self._unanswered.discard(batch)

    def _set_timer(self, loop: asyncio.AbstractEventLoop, deadline: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = loop.call_at(deadline, self._on_deadline, loop)

    def _on_deadline(self, loop: asyncio.AbstractEventLoop) -> None:
        """Ends the wait of callers who have run out of time."""
        now = max(loop.time(), self._timer.when() if self._timer else 0.0)
        self._timer = None
        for batch in self._unanswered:
            if batch.deadline <= now and not batch.done.done():
                error = out_of_time(batch.within, batch.error)
                error.__cause__ = batch.error
                batch.done.set_exception(error)
        if left := [batch.deadline for batch in self._unanswered if batch.deadline > now]:
            self._set_timer(loop, min(left))

    async def _write_all(self) -> None:
        try:
            while self._waiting:
                await send_or_halve(self._take(), self._write, self._refuse)
        finally:
            self._writer = None

    def _take(self) -> list[Batch]:
        size = 0
        for number, batch in enumerate(self._waiting):
            size += len(batch.calls)
            if size > LARGEST_GROUP and number:
                break
        else:
            number = len(self._waiting)
        group, self._waiting = self._waiting[:number], self._waiting[number:]
        return group

    async def _write(self, group: list[Batch]) -> None:
        try:
            existing = await self._send(group)
        except Refused:
            raise
        except BaseException as error:
            self._fail(group, error if isinstance(error, Exception) else StoreUnavailable("the event loop ended"))
            if not isinstance(error, Exception):
                raise
        else:
            # Before the callers continue: what they compute next must not delay the workers. Also for a caller that was canceled
            # meanwhile, because its jobs are written.
            for batch in group:
                for wakeup in batch.wakeups:
                    self._notify(wakeup)
            for batch in group:
                if not batch.done.done():
                    batch.done.set_result(existing)

    async def _send(self, group: list[Batch]) -> ExistingJobs:
        """Sends the group until the last caller has run out of time."""
        try:
            return await self._try(group)
        except StoreUnavailable:
            await asyncio.sleep(backoff(1))
        return await repeat_while_away(lambda _: self._try(group, again=True), lambda *_: None)

    async def _try(self, group: list[Batch], *, again: bool = False) -> ExistingJobs:
        """A batch whose caller gave up is not sent."""
        wanted = [batch for batch in group if not batch.done.done()]
        if not wanted:
            return {}
        calls = [call for batch in wanted for call in batch.calls]
        try:
            return existing_in(await self._link.fetch(writing(calls, again=again)))
        except StoreUnavailable as error:
            for batch in wanted:
                batch.error = error
            raise

    async def _refuse(self, batch: Batch, error: Refused) -> None:
        self._fail([batch], error)

    def _fail(self, group: list[Batch], error: Exception) -> None:
        for batch in group:
            if not batch.done.done():
                batch.done.set_exception(error)


# Many calls in one transaction


async def enqueue_bulk(link: Link, chunks: Iterator[str], within: float) -> ExistingJobs:
    """Writes all jobs, or none. Each chunk is a JSON array of jobs; the next one is encoded while PostgreSQL writes.

    `within` counts from the first failure: a million jobs may take longer than an outage may last.
    """
    sent: list[str] = []
    away_since = 0.0

    async def send(again: bool) -> ExistingJobs:
        return existing_in(await _write_chunks(link, sent, chunks, again=again))

    def failed(error: StoreUnavailable, pause: float) -> None:
        nonlocal away_since
        away_since = away_since or time.monotonic()
        if time.monotonic() + pause - away_since > within:
            raise out_of_time(within, error) from error

    return await repeat_while_away(send, failed)


async def _write_chunks(link: Link, sent: list[str], chunks: Iterator[str], *, again: bool) -> list[ExistingJobRow]:
    rows: list[ExistingJobRow] = []
    async with link.transaction() as run:
        for chunk in sent:
            rows += await run(jobs.enqueue(chunk, again=again))
        writing: asyncio.Future[Any] | None = None
        try:
            for chunk in chunks:  # encoded here, while PostgreSQL writes the previous one
                # Kept to the end: sending the same ids again shows whether a COMMIT without an answer happened.
                sent.append(chunk)
                if writing is not None:
                    rows += await writing
                writing = asyncio.ensure_future(run(jobs.enqueue(chunk)))
                await asyncio.sleep(0)
        finally:
            if writing is not None:
                rows += await writing
    return rows


# A transaction of the caller's


async def borrow_checked(runtime: ClientRuntime, connection: object) -> Borrowed:
    """Raises unless the caller's connection leads to the app's database."""
    borrowed = borrow(connection)
    await check_database(borrowed, runtime.database())
    return borrowed


def borrow_checked_sync(runtime: ClientRuntime, connection: object) -> Borrowed:
    borrowed = borrow(connection)
    check_database_sync(borrowed, runtime.database())
    return borrowed


async def enqueue_borrowed(
    runtime: ClientRuntime, connection: object, calls: Sequence[Call[Any]], wakeups: frozenset[Wakeup]
) -> ExistingJobs:
    """PostgreSQL sends each of the `wakeups` to listeners once, when the transaction commits."""
    database, borrowed = runtime.database(), await borrow_checked(runtime, connection)
    try:
        return existing_in(await borrowed.fetch(_writing_borrowed(database, calls, wakeups), database.schema))
    except Refused as error:
        raise explained(error) from error


def enqueue_borrowed_sync(
    runtime: ClientRuntime, connection: object, calls: Sequence[Call[Any]], wakeups: frozenset[Wakeup]
) -> ExistingJobs:
    database, borrowed = runtime.database(), borrow_checked_sync(runtime, connection)
    try:
        return existing_in(borrowed.fetch_sync(_writing_borrowed(database, calls, wakeups), database.schema))
    except Refused as error:
        raise explained(error) from error


def _writing_borrowed(database: DatabaseTarget, calls: Sequence[Call[Any]], wakeups: frozenset[Wakeup]) -> Query[ExistingJobRow]:
    if (job := plain_job(calls)) is None:
        return jobs.enqueue_borrowed(to_json(calls), database.channel, _payloads(wakeups))
    return jobs.enqueue_one_borrowed(job, database.channel, _payload(wakeups))


@lru_cache(maxsize=256)
def _payload(wakeups: frozenset[Wakeup]) -> str | None:
    """Of a plain job, which concerns only the workers of its queue. None: they are not notified."""
    return next((wakeup.payload() for wakeup in wakeups), None)


@lru_cache(maxsize=256)
def _payloads(wakeups: frozenset[Wakeup]) -> str:
    """Rendered once: the calls of a program go to few queues."""
    return queues.payloads(sorted(wakeups))
