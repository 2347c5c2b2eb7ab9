"""Running jobs again: retry waiting and finished jobs, replay dead letters."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any
from uuid import UUID

from tenure.client.cancel_delete import cleaned
from tenure.client.filters import Filters
from tenure.client.lock_retry import LockRetry, Refusals, batches
from tenure.client.pages import live_ids
from tenure.client.status import JobStatus
from tenure.client.unchanged import UNCHANGED
from tenure.model.errors import ConfigError, JobNotFound, KeyTaken, NotPossible
from tenure.model.events import JobReplayed, JobRetried
from tenure.model.ids import uuid7
from tenure.model.kinds import Registry
from tenure.model.payloads import plain_json
from tenure.model.states import State
from tenure.model.wakeup import Wakeup
from tenure.store import jobs

if TYPE_CHECKING:
    from tenure.client.runtime import ClientRuntime

log = logging.getLogger("tenure")

_WAY_OUT = {
    State.RUNNING: "is running: cancel it first, or wait until it ends",
    State.BLOCKED: "is blocked by other jobs: it runs when they are done; cancel or delete those that will never finish",
    State.WAITING: "waits for an event or another job: wait, it continues by itself when that happens",
}


async def retry(runtime: ClientRuntime, job_id: UUID, by: str | None) -> UUID:
    """Runs it as soon as possible. Returns the id of the job that will run: a copy, if the job is finished."""
    session, retry = runtime.session(), LockRetry()
    by = cleaned(by)
    while rows := await session.fetch(jobs.retry(job_id, by)):
        found = rows[0]
        state = State(found.state)
        if found.moved:
            session.notify(Wakeup.new_jobs(found.queue))
            runtime.events.emit(JobRetried(job_id=job_id, kind=found.kind, retry_of=None, by=by))
        if found.moved or state == State.PENDING:
            return job_id
        if found.holder is not None:
            raise KeyTaken({job_id: found.holder})
        if state in _WAY_OUT:
            raise NotPossible([job_id], _WAY_OUT[state])
        await retry.wait_for([job_id])
    return await _retry_finished(runtime, job_id, by)


async def _retry_finished(runtime: ClientRuntime, job_id: UUID, by: str | None) -> UUID:
    session, new_id = runtime.session(), uuid7()
    rows = await session.fetch(jobs.retry_finished(job_id, new_id, by))
    if not rows:
        raise JobNotFound(job_id)
    made = rows[0]
    if not made.existed:
        session.notify(Wakeup.new_jobs(made.queue))
        runtime.events.emit(JobRetried(job_id=made.id, kind=made.kind, retry_of=job_id, by=by))
    return made.id


async def replay(
    runtime: ClientRuntime,
    ids: Iterable[UUID],
    *,
    new_input: Any,
    priority: int | None,
    by: str | None,
) -> tuple[int, dict[UUID, UUID]]:
    """Dead letters get all their attempts again. Returns how many were replayed, and those that were not because another job has
    their key now. If the new input does not fit one of them, nothing is changed."""
    session = runtime.session()
    wanted = sorted(set(ids))  # the oldest first
    text = None if new_input is UNCHANGED else plain_json(new_input, what="the new input")
    if text is not None:
        for batch in batches(wanted):
            found = [JobStatus.from_row(row) for row in await session.fetch(jobs.find_all(batch))]
            check_input(runtime.kinds, {job.kind for job in found if job.state == State.DEAD_LETTER}, text)
    done, taken, refusals = 0, dict[UUID, UUID](), Refusals()
    by = cleaned(by)

    async def ask(batch: list[UUID]) -> list[UUID]:
        nonlocal done
        answers = await session.fetch(jobs.replay(batch, input=text, priority=priority, by=by))
        moved = [row for row in answers if row.moved]
        done += len(moved)
        for queue in {row.queue for row in moved}:
            session.notify(Wakeup.new_jobs(queue))
        for row in moved:
            runtime.events.emit(JobReplayed(job_id=row.id, kind=row.kind, by=by))
        taken.update({row.id: row.holder for row in answers if row.holder is not None})
        return [row.id for row in answers if not row.moved and row.holder is None]

    await refusals.persist(wanted, ask)
    if taken and refusals:
        warn_of_taken(taken)  # only one of the two can be raised
    refusals.check(done)
    return done, taken


async def replay_all(runtime: ClientRuntime, filters: Filters, *, new_input: Any, priority: int | None, by: str | None) -> int:
    """Finds all first, so that the oldest are replayed first. Those whose key another job has now stay dead letters."""
    if new_input is not UNCHANGED and filters.kind is None:
        raise ConfigError("replay_all with input needs kind=: input that fits one kind does not fit another")
    ids = [job_id async for batch in live_ids(runtime.session().fetch, filters) for job_id in batch]
    done, taken = await replay(runtime, ids, new_input=new_input, priority=priority, by=by)
    if taken:
        warn_of_taken(taken)
    return done


def warn_of_taken(taken: Mapping[UUID, UUID]) -> None:
    log.warning("dead letters not replayed: other jobs have their keys", extra={"count": len(taken), "job_ids": list(taken)})


def check_input(kinds: Registry, names: Iterable[str], text: str) -> None:
    """Raises `InvalidInput` if it does not fit a kind that this app defines."""
    for name in names:
        if name in kinds:
            kinds[name].input.decode(text)
