"""Running jobs again: retry what waits or is over, replay dead letters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any
from uuid import UUID

from tenure.client.endings import cleaned
from tenure.client.filters import Filters
from tenure.client.keep import KEEP
from tenure.client.pages import live_ids
from tenure.client.patience import Patience, batches, persist
from tenure.client.status import JobStatus
from tenure.model.errors import ConfigError, JobNotFound, NotPossible
from tenure.model.ids import uuid7
from tenure.model.kinds import Registry
from tenure.model.payloads import plain_json
from tenure.model.states import State
from tenure.store import control, lists

if TYPE_CHECKING:
    from tenure.client.session import Session

_WAY_OUT = {
    State.RUNNING: "is running: cancel it first, or wait for its end",
    State.CLAIMED: "is about to run: wait for its end",
    State.BLOCKED: "is blocked by other jobs: it runs when they are done; cancel or delete those that never will be",
    State.WAITING: "waits for an event or another job: it goes on by itself when that happens",
}


async def retry(session: Session, job_id: UUID, by: str | None) -> UUID:
    """Runs it as soon as it can be. Gives the id of the job that will run: of a finished one a new job is made."""
    patience = Patience()
    by = cleaned(by)
    while rows := await session.fetch(control.retry(job_id, by)):
        [(name, moved, queue)] = rows
        state = State(name)
        if moved:
            session.tell(f"jobs {queue}")
        if moved or state == State.PENDING:
            return job_id
        if state in _WAY_OUT:
            raise NotPossible([job_id], _WAY_OUT[state])
        await patience.wait_for([job_id])
    return await _retry_finished(session, job_id, by)


async def _retry_finished(session: Session, job_id: UUID, by: str | None) -> UUID:
    new_id = uuid7()
    rows = await session.fetch(control.retry_finished(job_id, new_id, by))
    if not rows:
        raise JobNotFound(job_id)
    session.tell(f"jobs {rows[0][0]}")
    return new_id


async def replay(
    session: Session,
    kinds: Registry,
    ids: Iterable[UUID],
    *,
    new_input: Any,
    priority: int | None,
    by: str | None,
) -> int:
    """Dead letters get all their attempts again. Gives how many there were; nothing is done if new input does not fit one."""
    wanted = sorted(set(ids))  # the oldest first
    text = None if new_input is KEEP else plain_json(new_input, what="the new input")
    if text is not None:
        for batch in batches(wanted):
            found = [JobStatus.from_row(row) for row in await session.fetch(lists.find_all(batch))]
            check_input(kinds, {job.kind for job in found if job.state == State.DEAD_LETTER}, text)
    done = 0
    by = cleaned(by)

    async def ask(batch: list[UUID]) -> list[UUID]:
        nonlocal done
        rows = await session.fetch(control.replay(batch, input=text, priority=priority, by=by))
        done += sum(moved for _, _, moved in rows)
        for queue in {queue for _, queue, moved in rows if moved}:
            session.tell(f"jobs {queue}")
        return [job_id for job_id, _, moved in rows if not moved]

    await persist(wanted, ask)
    return done


async def replay_all(
    session: Session,
    kinds: Registry,
    filters: Filters,
    *,
    new_input: Any,
    priority: int | None,
    by: str | None,
) -> int:
    """All are found first, so that the oldest come first."""
    if new_input is not KEEP and filters.kind is None:
        raise ConfigError("replay_all with input needs kind=: input that fits one kind does not fit another")
    ids = [job_id async for batch in live_ids(session.fetch, filters) for job_id in batch]
    return await replay(session, kinds, ids, new_input=new_input, priority=priority, by=by)


def check_input(kinds: Registry, names: Iterable[str], text: str) -> None:
    """Raises `InvalidInput` if a kind that this app knows does not take it."""
    for name in names:
        if name in kinds:
            kinds[name].input.decode(text)
