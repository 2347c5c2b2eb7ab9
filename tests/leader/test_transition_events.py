"""Every legal move of a job has an event, and the leader emits those of its own moves."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import pytest

from tenure import Tenure, events
from tenure.leader.duties.resolver import Resolver
from tenure.leader.reporting import Reporting
from tenure.model.event_bus import Events
from tenure.model.events import (
    Event,
    JobCanceled,
    JobCompleted,
    JobDue,
    JobFailed,
    JobReaped,
    JobReplayed,
    JobRetried,
    JobSettled,
    JobStarted,
    JobUnblocked,
    WorkflowSuspended,
    WorkflowWoken,
)
from tenure.model.states import LEGAL_MOVES, State
from tenure.store import blockers, jobs, workflows
from tenure.store import events as sent_events
from tenure.store.duty_link import DutyLink
from tenure.store.target import DatabaseTarget
from tests.store.database import Database

BY_A_RUN = dict.fromkeys(LEGAL_MOVES[State.RUNNING], (JobSettled,))
WITHOUT_A_RUN = {State.CANCELED: (JobCanceled,), State.COMPLETED: (JobCompleted,)}

EVENT_OF_MOVE: dict[State, dict[State, tuple[type[Event], ...]]] = {
    State.SCHEDULED: {**WITHOUT_A_RUN, State.PENDING: (JobDue, JobRetried)},
    State.BLOCKED: {
        **WITHOUT_A_RUN,
        State.PENDING: (JobUnblocked, JobRetried),
        State.SCHEDULED: (JobUnblocked,),
        State.FAILED: (JobFailed,),
    },
    State.PENDING: {**WITHOUT_A_RUN, State.RUNNING: (JobStarted,)},
    State.RUNNING: {
        **BY_A_RUN,
        **{end: (*BY_A_RUN[end], *told) for end, told in WITHOUT_A_RUN.items()},
        State.WAITING: (JobSettled, WorkflowSuspended),
        State.PENDING: (JobSettled, JobReaped),
        State.DEAD_LETTER: (JobSettled, JobReaped),
    },
    State.WAITING: {**WITHOUT_A_RUN, State.PENDING: (WorkflowWoken, JobDue), State.FAILED: (JobFailed,)},
    State.RETRY: {**WITHOUT_A_RUN, State.PENDING: (JobDue, JobRetried)},
    State.DEAD_LETTER: {**WITHOUT_A_RUN, State.PENDING: (JobReplayed, JobRetried)},
}


def test_every_legal_move_has_its_event_and_every_event_is_public():
    moves = {(before, after) for before, afters in LEGAL_MOVES.items() for after in afters}
    assert {(before, after) for before, told in EVENT_OF_MOVE.items() for after in told} == moves
    named = {type_ for told in EVENT_OF_MOVE.values() for types in told.values() for type_ in types}
    assert all(getattr(events, type_.__name__) is type_ for type_ in named)


@pytest.fixture
async def link(database_target: DatabaseTarget) -> AsyncIterator[DutyLink]:
    link = DutyLink(database_target)
    yield link
    await link.close()


async def resolve(link: DutyLink, database: Database) -> list[Event]:
    seen: list[Event] = []
    events = Events()
    events.subscribe((), seen.append)
    resolver, term = Resolver(Reporting(events=events)), database.term("resolver")
    for _ in range(3):
        assert (await resolver.run_once(link, term)).holds
    database.end_term("resolver")
    return seen


def end_all(database: Database) -> None:
    claim = database.claim(database.worker(), limit=100)
    database.run(jobs.finish(claim.finished()))


def suspend(database: Database, **waits_for: Any) -> str:
    [job] = database.enqueue({"queue": "flows"})
    claim = database.claim(database.worker(queues=["flows"]), queues=["flows"])
    outcome = {"id": job, "claim_id": claim.id, "steps": [], "waits": [], "chains": [], "missing": 0, **waits_for}
    assert database.run(workflows.suspend(json.dumps([outcome])))
    return job


async def test_jobs_that_become_unblocked_are_events(link, database):
    [first] = database.enqueue({})
    now, later = database.enqueue({"after": [first], "queue": "mail"}, {"after": [first], "delay": 3600})
    await resolve(link, database)
    end_all(database)
    assert sorted(await resolve(link, database), key=lambda event: event.queue, reverse=True) == [
        JobUnblocked(job_id=UUID(now), kind="work", queue="mail", state=State.PENDING),
        JobUnblocked(job_id=UUID(later), kind="work", queue="default", state=State.SCHEDULED),
    ]


async def test_a_job_that_is_canceled_with_its_blocker_is_an_event(link, database):
    [first] = database.enqueue({})
    [waiting] = database.enqueue({"after": [first]})
    await resolve(link, database)
    database.run(jobs.cancel([first], error="canceled"))
    [event] = await resolve(link, database)
    assert isinstance(event, JobCanceled)
    assert (event.job_id, event.kind, event.by, event.ran) == (UUID(waiting), "work", None, False)
    assert "did not complete" in (event.reason or "")


@pytest.mark.parametrize("ends", [JobCompleted, JobFailed])
async def test_the_end_of_a_group_is_an_event(link, database, ends):
    [member] = database.enqueue({})
    [group] = database.enqueue({"kind": "tenure.group", "after": [member]})
    await resolve(link, database)
    if ends is JobCompleted:
        end_all(database)
    else:
        database.run(jobs.cancel([member], error="canceled"))
    [event] = await resolve(link, database)
    assert (type(event), event.job_id, event.kind) == (ends, UUID(group), "tenure.group")


@pytest.mark.parametrize("by", ["event", "child"])
async def test_a_workflow_that_is_woken_is_an_event(link, database, by):
    if by == "event":
        job = suspend(database, waits=[{"step": "paid", "event": "paid", "key": ""}])
    else:
        [child] = database.enqueue({})
        job = suspend(database, chains=[{"id": child, "number": -1}], missing=1)
    assert await resolve(link, database) == []
    if by == "event":
        database.run(sent_events.emit('[{"name": "paid"}]'))
    else:
        end_all(database)
    assert await resolve(link, database) == [WorkflowWoken(job_id=UUID(job), kind="work", queue="flows")]


async def test_jobs_are_not_listed_without_a_subscriber(database):
    [first] = database.enqueue({})
    database.enqueue({"after": [first]})
    suspend(database, waits=[{"step": "paid", "event": "paid", "key": ""}])
    term = database.term("resolver")
    database.run(blockers.arm(term, limit=10))
    end_all(database)
    database.run(sent_events.emit('[{"name": "paid"}]'))
    database.run(blockers.resolve(term, limit=10))
    database.run(sent_events.number(term, limit=10))
    [unblocked] = database.fetch(blockers.unblock(term, limit=10))
    [woken] = database.fetch(sent_events.wake(term, limit=10))
    assert (unblocked.moved, unblocked.jobs, woken.touched, woken.jobs) == (1, [], 1, [])


async def test_a_chain_that_is_completed_without_a_worker_is_an_event(dsn, database):
    app = Tenure(dsn)
    seen: list[Event] = []
    app.on(JobCompleted)(seen.append)
    [job] = database.enqueue({})
    await app.chains.complete(job, by="ada")
    await app.close()
    assert seen == [JobCompleted(job_id=UUID(job), kind="work", by="ada")]
