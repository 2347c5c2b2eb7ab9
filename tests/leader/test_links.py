"""Duties do not block each other: each round has a connection, and the heartbeat has its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial

import pytest

from tenure.leader import links
from tenure.leader.duties.registry import DUTIES
from tenure.leader.leader import Leader
from tenure.leader.settings import LeaderSettings
from tenure.model.wakeup import Wakeup
from tenure.store import jobs, leases
from tenure.store.duty_link import Contended, DutyLink
from tenure.store.leases import LeaseHeartbeat
from tenure.store.link import Link
from tenure.store.target import DatabaseTarget
from tests.leader.guarded import WRITES, lay_out_work
from tests.store.database import Database
from tests.waiting import until

CONNECTED = "select count(*) from pg_stat_activity where datname = current_database() and application_name = %s"
WAITING = (
    "select count(*) from pg_stat_activity where datname = current_database() and application_name = 'tenure duties'"
    " and wait_event_type = 'Lock'"
)


@pytest.fixture
async def leader(database_target: DatabaseTarget) -> AsyncIterator[Leader]:
    leader = Leader(database_target, LeaderSettings(rotate=0.0))
    yield leader
    await leader.stop()


def overdue_worker(database: Database) -> None:
    """One whose lease ran out while it ran a job."""
    worker = database.worker()
    database.enqueue({"queue": "reaped"})
    assert database.claim(worker, queues=["reaped"]).ids
    database.sql("update tenure.workers set expires_at = now() - interval '1 hour'")


async def test_a_locked_table_delays_the_duty_that_needs_it_and_no_other(leader, database, other, monkeypatch):
    """VACUUM FULL or REINDEX of tenure.counters, which only the rollup wants. Its round waits without an end here, so the
    others need a connection of their own."""
    monkeypatch.setattr(links, "DutyLink", partial(DutyLink, lock_timeout=600.0))
    leader._links = links.DutyLinks(leader._link.database)
    database.sql("insert into tenure.tallies (queue, kind, what, jobs) values ('q', 'k', 'completed', 1)")
    with other.connection.transaction():
        other.sql("lock table tenure.counters in access exclusive mode")
        leader.start()
        await until(lambda: database.sql(WAITING)[0][0] > 0)
        leader.contact._since -= 3600.0  # in contact for long: late workers are condemned at once
        database.enqueue({"delay": 3600})
        database.sql("update tenure.jobs set run_at = now()")
        overdue_worker(database)
        leader.on_wakeup(Wakeup.job_scheduled())
        leader._duty_tasks["reaper"].wake()
        await until(lambda: database.sql("select state, count(*) from tenure.jobs group by state"), is_=[("pending", 2)])
    await until(lambda: database.sql("select sum(jobs) from tenure.counters where what = 'completed'"), is_=[(1,)])


async def test_a_round_that_does_not_get_a_lock_ends_and_does_not_break_the_contact(leader, database, other, monkeypatch):
    monkeypatch.setattr(links, "DutyLink", partial(DutyLink, lock_timeout=0.2))
    leader._links = links.DutyLinks(leader._link.database)
    database.sql("insert into tenure.tallies (queue, kind, what, jobs) values ('q', 'k', 'completed', 1)")
    with other.connection.transaction():
        other.sql("lock table tenure.counters in access exclusive mode")
        leader.contact._since -= 3600.0
        leader.start()
        errors = "select (metadata ->> 'errors')::int, metadata ->> 'last_error' from tenure.leases where name = 'rollup'"
        [(_, told)] = await until(lambda: (rows := database.sql(errors)) and (rows[0][0] or 0) > 1 and rows)
        assert told.startswith("Contended")
        assert leader.contact.age > 3600.0
        assert "rollup" in leader.duties_held
    await until(lambda: database.sql("select sum(jobs) from tenure.counters where what = 'completed'"), is_=[(1,)])


async def test_rounds_that_follow_each_other_do_not_keep_another_one_waiting(database_target, monkeypatch):
    """None of them is blocked, but together they never let go of the connection."""
    monkeypatch.setattr(links, "PATIENCE", 0.2)
    monkeypatch.setattr(links, "LONGEST_WAIT", 0.3)
    taken = links.DutyLinks(database_target)
    served = asyncio.Event()

    async def rounds() -> int:
        for number in range(100):
            if served.is_set():
                return number
            async with taken.take():
                await asyncio.sleep(0.15)
        return 100

    others = [asyncio.create_task(rounds()) for _ in range(3)]
    await asyncio.sleep(0)
    async with taken.take():
        served.set()
    assert all([await other < 100 for other in others])
    await taken.close()


async def test_a_further_connection_is_opened_only_while_a_round_is_held_up(database_target, database):
    taken = links.DutyLinks(database_target)
    try:
        async with taken.take() as first:
            await first.fetch(leases.check(database.term("duty")))
            async with taken.take() as second:
                assert second is not first
                await second.fetch(leases.check(database.term("other duty")))
                assert database.sql(CONNECTED, "tenure duties") == [(2,)]
        await until(lambda: database.sql(CONNECTED, "tenure duties"), is_=[(1,)])
        async with taken.take() as third:
            assert third is second
    finally:
        await taken.close()
    await until(lambda: database.sql(CONNECTED, "tenure duties"), is_=[(0,)])


async def test_one_connection_serves_all_duties_when_nothing_is_wrong(leader, database):
    leader.start()
    ran = "select count(*) from tenure.leases where metadata ? 'last_run'"
    await until(lambda: database.sql(ran), is_=[(len(DUTIES),)])
    await until(lambda: database.sql(CONNECTED, "tenure duties"), is_=[(1,)])


async def test_a_heartbeat_does_not_wait_for_a_statement_of_its_duty(dsn, database, other):
    """One that runs for longer than the lease lasts must not cost its holder all duties."""
    lay_out_work(database)
    term = database.term("duty", ttl=5.0)
    heartbeat = LeaseHeartbeat(name="duty", term=term.term, ttl=60.0)
    with Database(dsn, lock_timeout="2s") as third, other.connection.transaction():
        assert other.run(WRITES["jobs/promote_jobs"](database, term))[0][:2] == (True, 1)
        assert third.run(leases.beat(term.holder, [heartbeat])) == [("duty",)]


async def test_a_statement_that_meets_a_take_over_under_way_waits_and_then_writes_nothing(dsn, database, other):
    lay_out_work(database)
    term = database.term("duty")
    database.end_term("duty")
    database.sql("update tenure.leases set expires_at = now() + interval '1 hour'")
    link = DutyLink(DatabaseTarget.at(dsn))
    try:
        with other.connection.transaction():
            other.run(leases.acquire("00000000-0000-0000-0000-000000000007", [("duty", 60.0)], forced=True))
            late = asyncio.create_task(link.fetch(WRITES["jobs/promote_jobs"](database, term)))
            await until(lambda: database.sql(WAITING)[0][0] > 0)
        [answer] = await late
        assert answer[:2] == (False, 0)
    finally:
        await link.close()


@pytest.mark.parametrize("pooled", [False, True])
async def test_a_lock_timeout_is_distinguished_from_an_outage(dsn, database, other, pooled):
    link = DutyLink(DatabaseTarget.at(dsn, pooled=pooled), lock_timeout=0.1)
    term = database.term("duty")
    try:
        with other.connection.transaction():
            other.sql("lock table tenure.jobs in access exclusive mode")
            with pytest.raises(Contended):
                await link.fetch(jobs.promote(term, limit=10))
        assert (await link.fetch(jobs.promote(term, limit=10)))[0][0]
    finally:
        await link.close()


async def test_a_link_that_was_given_is_shared_and_stays_open(database_target, database):
    link = Link(database_target, "lease", hot=True)
    leader = Leader(database_target, link=link)
    leader.start()
    try:
        await until(lambda: len(leader.duties_held), is_=len(DUTIES))
        assert database.sql(CONNECTED, "tenure leader") == [(0,)]
        await leader.stop()
        assert database.sql(CONNECTED, "tenure lease") == [(1,)]
        assert database.sql("select count(*) from tenure.leases where expires_at > clock_timestamp()") == [(0,)]
    finally:
        await link.close()


async def test_a_lock_on_a_shared_link_is_released_with_the_duties(database_target, database):
    link = Link(database_target, "lease", hot=True)
    leader = Leader(database_target, LeaderSettings(strategy="advisory"), link=link)
    here = "(select oid from pg_database where datname = current_database())"
    locks = f"select count(*) from pg_locks where locktype = 'advisory' and objsubid = 1 and database = {here}"
    leader.start()
    try:
        await until(lambda: len(leader.duties_held), is_=len(DUTIES))
        assert database.sql(locks) == [(1,)]
        await leader.stop()
        assert database.sql(locks) == [(0,)]
    finally:
        await link.close()


async def test_a_candidate_without_duties_has_no_connection(leader, database):
    for duty in leader._duties:
        database.term(duty, ttl=600.0)
    leader.start()
    await until(lambda: leader._elect_at > 0)  # it has asked, and knows when to ask again
    for name in ("tenure leader", "tenure duties"):
        await until(lambda name=name: database.sql(CONNECTED, name), is_=[(0,)])
