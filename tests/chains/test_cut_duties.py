"""The leader's connection breaks around each statement of flow: before it is sent, inside of it, after its commit.

The next rounds end with what a leader with a good connection ends with: nothing is lost, nothing is done twice.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from tenure.chaos.proxy import Moment, Proxy
from tenure.leader.duties.resolver import Resolver
from tenure.leader.duties.stager import Stager
from tenure.leader.reporting import Reporting
from tenure.model.errors import StoreUnavailable
from tenure.store import events, jobs, workflows
from tenure.store.duty_link import DutyLink
from tenure.store.leases import Term
from tenure.store.target import DatabaseTarget
from tests.store.database import Database
from tests.waiting import until

STATEMENTS = [
    "blockers/find_resolver_work",
    "blockers/arm_blockers",
    "blockers/resolve_endings",
    "blockers/unblock_jobs",
    "blockers/end_blocked",
    "events/number_events",
    "events/wake_waiting",
    "jobs/promote_jobs",
]
MOMENTS = ["before", "during", "after", "terminated"]

Cut = Callable[[], Awaitable[None]]


class Leading:
    """Rounds of the duties that concern flow. The connection breaks once, at a statement of the test's choice."""

    def __init__(self, database: Database, proxy: Proxy, link: DutyLink) -> None:
        self._database, self._proxy, self._link = database, proxy, link
        reporting = Reporting()
        self._resolver = Resolver(reporting)
        self._duties = [self._resolver, Stager(reporting)]
        self._terms: list[Term] = [database.term(duty.name) for duty in self._duties]
        self.broken = 0

    async def prepare(self) -> None:
        """Sends every statement once, so that what breaks later is not the message that prepares it."""
        for part in self._resolver.parts.values():
            await part(self._link, self._terms[0])
        await self.settle()

    async def settle(self) -> None:
        idle = 0
        while idle < 2:
            touched = 0
            for duty, term in zip(self._duties, self._terms, strict=True):
                try:
                    result = await duty.run_once(self._link, term)
                except StoreUnavailable:
                    self.broken += 1
                    touched += 1
                else:
                    assert result.holds
                    touched += result.touched
            idle = 0 if touched else idle + 1

    def break_at(self, wanted: str, moment: str, other: Database) -> None:
        fetch, left = self._link.fetch, [wanted]

        async def breaking(query: Any, **more: Any) -> Any:
            if query.name not in left:
                return await fetch(query, **more)
            left.clear()
            if moment == "terminated":
                return await self._terminated(fetch(query, **more), other)
            # The answer of a statement ends with its command tag, which is sent after the commit.
            seen = b"SELECT " if moment == "after" else b""
            self._proxy.lose_answer("duties", when_seen=seen, moment=_moment(moment))
            return await fetch(query, **more)

        self._link.fetch = breaking  # type: ignore[method-assign]

    async def _terminated(self, statement: Any, other: Database) -> Any:
        """The backend ends while it holds a snapshot and waits for the row of its term."""
        with other.connection.transaction():
            other.sql("select 1 from tenure.leases for update")
            running = asyncio.create_task(statement)
            look = """select pid from pg_stat_activity
                       where datname = current_database() and application_name = 'tenure duties' and wait_event_type = 'Lock'"""
            [(pid,)] = await until(lambda: self._database.sql(look))
            self._database.sql("select pg_terminate_backend(%s)", pid)
            await asyncio.wait([running])
        return await running


def _moment(text: str) -> Moment:
    assert text in ("before", "during", "after")
    return text  # type: ignore[return-value]


@pytest.fixture
async def leading(database: Database, dsn: str) -> AsyncIterator[Leading]:
    proxy = Proxy(dsn)
    async with proxy.open() as proxied:
        link = DutyLink(DatabaseTarget.at(proxied))
        yield Leading(database, proxy, link)
        await link.close()
    for duty in ("resolver", "stager"):
        database.end_term(duty)


def suspend(database: Database, worker: str, **waits_for: Any) -> str:
    [job] = database.enqueue({"queue": "flows"})
    claim = database.claim(worker, queues=["flows"])
    assert claim.ids == [job]
    outcome = {"id": job, "claim_id": claim.id, "steps": [], "waits": [], "chains": [], "missing": 0, **waits_for}
    assert database.run(workflows.suspend(json.dumps([outcome])))
    return job


def begin_waits(database: Database, worker: str) -> dict[str, str]:
    """A job of each sort that waits, by how it ends."""
    good, bad, child = database.enqueue({}, {"queue": "bad"}, {"queue": "child"})
    unblocked, later, canceled, runs = database.enqueue(
        {"after": [good]}, {"after": [good], "delay": 3600}, {"after": [bad]}, {"after": [good, bad], "on_failure": "run"}
    )
    group, failed_group = database.enqueue(
        {"kind": "tenure.group", "after": [good, child]}, {"kind": "tenure.group", "after": [good, bad], "on_failure": "run"}
    )
    behind = database.enqueue({"after": [group]})[0]
    woken = suspend(database, worker, waits=[{"step": "paid", "event": "paid", "key": ""}])
    of_child = suspend(database, worker, chains=[{"id": child, "number": -1}], missing=1)
    nap = {"number": 1, "name": "nap", "what": "sleep", "state": "open", "seconds": 0}
    rested = suspend(database, worker, steps=[nap])
    late = {"number": 1, "name": "paid", "what": "wait", "state": "open", "seconds": 0}
    timed_out = suspend(database, worker, steps=[late], waits=[{"step": "paid", "event": "never", "key": ""}])
    return {
        good: "completed", bad: "failed", child: "completed", unblocked: "pending", later: "scheduled", canceled: "canceled",
        runs: "pending", group: "completed", failed_group: "failed", behind: "pending", woken: "pending", of_child: "pending",
        rested: "pending", timed_out: "pending",
    }  # fmt: skip


def end_waits(database: Database, worker: str) -> None:
    for queue, more in {"default": {}, "child": {}, "bad": {"state": "failed", "error": "no"}}.items():
        database.run(jobs.finish(database.claim(worker, queues=[queue]).finished(**more)))
    database.run(events.emit('[{"name": "paid"}]'))


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("statement", STATEMENTS)
async def test_a_connection_that_breaks_loses_nothing_and_repeats_nothing(leading, database, other, statement, moment):
    worker = database.worker(queues=["default", "flows", "bad", "child"])
    await leading.prepare()
    expected = begin_waits(database, worker)
    if statement == "blockers/arm_blockers":
        leading.break_at(statement, moment, other)
    await leading.settle()
    end_waits(database, worker)
    if statement != "blockers/arm_blockers":
        leading.break_at(statement, moment, other)
    await leading.settle()

    assert leading.broken == 1
    assert dict(database.sql("select id::text, state from tenure.all_jobs")) == expected
    # Each job ended once, and is counted once; a job that ended without a run has one incident.
    ended = [state for state in expected.values() if state in ("completed", "failed", "canceled")]
    counted = dict(database.sql("select what, sum(jobs) from tenure.tallies where what <> 'enqueued' group by what"))
    assert {what: counted[what] for what in sorted(set(ended))} == {what: ended.count(what) for what in sorted(set(ended))}
    assert database.sql("select what, count(*) from tenure.incidents group by what order by what") == [
        ("canceled", 1),
        ("failed", 1),
    ]
    positions = [position for (position,) in database.sql("select position from tenure.jobs where state = 'pending'")]
    assert len(set(positions)) == len(positions)
    assert min(positions) > 0
    # Nothing is left to do.
    assert database.sql("select count(*) from tenure.blocked where missing is not null") == [(0,)]
    assert database.sql("select count(*) from tenure.chain_endings where not resolved") == [(0,)]
    assert database.sql("select count(*) from tenure.blockers where not armed or not met") == [(0,)]
    assert database.sql("select count(*) from tenure.events where position is null") == [(0,)]
    assert database.sql("select count(*) from tenure.waits where not checked") == [(0,)]
