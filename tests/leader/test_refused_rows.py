"""A row that PostgreSQL rejects, for any reason, does not block others: it is reported once, skipped, and tried again later."""

from __future__ import annotations

import json
import logging
import random
import string
from collections.abc import AsyncIterator, Callable, Iterator
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, NamedTuple
from uuid import uuid4

import pytest

from tenure.leader.duties import cron as cron_duty
from tenure.leader.duties.cleaner import Cleaner
from tenure.leader.duties.cron import Cron
from tenure.leader.duties.duty import Duty
from tenure.leader.duties.reaper import Contact, Reaper
from tenure.leader.duties.resolver import Resolver
from tenure.leader.duties.rollup import Rollup
from tenure.leader.duties.stager import Stager
from tenure.model.ids import uuid7
from tenure.store import events, isolation, jobs, schedules, workflows
from tenure.store.duty_link import DutyLink
from tenure.store.faults import Refused
from tenure.store.query import Pick
from tenure.store.target import DatabaseTarget
from tests.leader.plans import finish, plan
from tests.store.database import Database

DAY = 86400.0
GOOD = 9
HOLDER = str(uuid4())


@pytest.fixture
async def link(database_target: DatabaseTarget) -> AsyncIterator[DutyLink]:
    link = DutyLink(database_target)
    yield link
    await link.close()


@pytest.fixture
def refuse(database: Database) -> Iterator[Callable[..., None]]:
    """A trigger of the user's that raises an error with a code of its own."""
    database.sql("create schema audit")

    def make(table: str, when: str, condition: str, level: str = "row", code: str = "AU001") -> None:
        database.sql(
            "create or replace function audit.refuse() returns trigger language plpgsql as"
            f" $$ begin raise exception 'the auditor says no' using errcode = '{code}'; end $$"
        )
        database.sql(f"drop trigger if exists audit on tenure.{table}")
        condition = f"when ({condition})" if level == "row" else ""
        database.sql(
            f"create trigger audit before {when} on tenure.{table} for each {level} {condition} execute function audit.refuse()"
        )

    yield make
    database.sql("drop schema audit cascade")


def due(database: Database, count: int = 1, **more: Any) -> list[str]:
    ids = database.enqueue(*({"delay": 3600} for _ in range(count)), **more)
    database.sql("update tenure.jobs set run_at = now() - interval '1 s' where state = 'scheduled'")
    return ids


def complaints(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [record for record in caplog.records if record.levelno >= logging.ERROR]


async def rounds(duty: Duty, link: DutyLink, database: Database, count: int = 2) -> None:
    for _ in range(count):
        assert (await duty.run_once(link, database.term(duty.name, HOLDER))).holds


# Promoting


@pytest.mark.parametrize("code", ["AU001", "08001", "55P03", "40001", "42501", "0A000"])
async def test_a_job_that_cannot_be_promoted_blocks_no_other_and_is_reported_once(link, database, refuse, caplog, code):
    refuse("jobs", "update", "new.queue = 'bad' and new.state = 'pending'", code=code)
    due(database, GOOD)
    [bad] = due(database, queue="bad")
    due(database, GOOD)
    await rounds(Stager(), link, database, count=3)
    assert database.sql("select state, count(*) from tenure.jobs group by state order by state") == [
        ("pending", 2 * GOOD),
        ("scheduled", 1),
    ]
    [told] = complaints(caplog)
    assert told.job_id == bad
    assert told.sqlstate == code
    assert "the auditor says no" in told.error


async def test_it_is_tried_again_later(link, database, refuse, monkeypatch):
    monkeypatch.setattr(isolation, "AGAIN_AFTER", 0.0)
    refuse("jobs", "update", "new.queue = 'bad' and new.state = 'pending'")
    due(database, queue="bad")
    stager = Stager()
    await rounds(stager, link, database)
    database.sql("drop trigger audit on tenure.jobs")
    await rounds(stager, link, database)
    assert database.sql("select state from tenure.jobs") == [("pending",)]


class PeekedRows(NamedTuple):
    peeked: list[str]


async def test_the_time_until_it_is_tried_again_grows_from_seconds_to_minutes(monkeypatch):
    now, tries = 1000.0, []
    monkeypatch.setattr(isolation, "time", SimpleNamespace(monotonic=lambda: now))

    async def send(pick: Pick) -> PeekedRows:
        if not pick.peek and "bad" in (pick.only or ()):
            tries.append(now)
        if not pick.peek and (pick.only is None or "bad" in pick.only):
            raise Refused("the auditor says no")
        return PeekedRows(["bad", "good"] if pick.peek else [])

    rows = isolation.RefusedRows("to change a row")
    while now < 2000:
        await rows.run(send)
        now += 1
    singly = sorted(set(tries))
    assert [after - before for before, after in pairwise(singly)] == [2, 4, 8, 16, 32, 64, 128, 256, 300]


async def test_what_came_later_is_promoted_while_a_row_is_left_out(link, database, refuse):
    refuse("jobs", "update", "new.queue = 'bad' and new.state = 'pending'")
    due(database, queue="bad")
    stager = Stager()
    await rounds(stager, link, database)
    due(database, 3)
    await rounds(stager, link, database, count=1)
    assert database.sql("select count(*) from tenure.jobs where state = 'pending'") == [(3,)]


async def test_more_bad_rows_than_a_batch_holds_stop_no_other(link, database, refuse):
    refuse("jobs", "update", "new.queue = 'bad' and new.state = 'pending'")
    stager = Stager()
    stager.batch = 4
    due(database, 10, queue="bad")
    due(database, 3)
    database.sql("update tenure.jobs set run_at = now() - interval '1 hour' where queue = 'bad'")
    await rounds(stager, link, database, count=5)
    assert database.sql("select queue, state from tenure.jobs where queue <> 'bad'") == [("default", "pending")] * 3


async def test_more_bad_rows_than_can_be_remembered_stop_no_other(link, database, refuse, monkeypatch):
    monkeypatch.setattr(isolation, "MOST_REMEMBERED", 4)
    refuse("jobs", "update", "new.queue = 'bad' and new.state = 'pending'")
    stager = Stager()
    stager.batch = 4
    due(database, 20, queue="bad")
    due(database, 3)
    database.sql("update tenure.jobs set run_at = now() - interval '1 hour' where queue = 'bad'")
    await rounds(stager, link, database, count=8)
    assert database.sql("select queue, state from tenure.jobs where queue <> 'bad'") == [("default", "pending")] * 3


async def test_bad_rows_that_are_no_longer_remembered_are_tried_again_later(link, database, refuse, monkeypatch):
    monkeypatch.setattr(isolation, "MOST_REMEMBERED", 4)
    refuse("jobs", "update", "new.queue = 'bad' and new.state = 'pending'")
    stager = Stager()
    stager.batch = 4
    due(database, 20, queue="bad")
    await rounds(stager, link, database, count=8)
    database.sql("drop trigger audit on tenure.jobs")
    later = isolation.time.monotonic() + isolation.AGAIN_AFTER + 1
    monkeypatch.setattr(isolation, "time", SimpleNamespace(monotonic=lambda: later))
    await rounds(stager, link, database, count=8)
    assert database.sql("select distinct state from tenure.jobs") == [("pending",)]


async def test_a_name_that_is_too_long_for_an_index_stops_no_other(link, database, caplog):
    """Written past the client, under an index of the user's."""
    name = "".join(random.choices(string.ascii_letters + string.digits, k=4000))
    database.sql("create index of_users on tenure.jobs (kind) where position > 0")
    try:
        database.sql("insert into tenure.jobs (id, state, kind, run_at) values (%s, 'scheduled', %s, now())", uuid7(), name)
        due(database, GOOD)
        await rounds(Stager(), link, database)
    finally:
        database.sql("drop index tenure.of_users")
    assert database.sql("select count(*) from tenure.jobs where state = 'pending'") == [(GOOD,)]
    assert len(complaints(caplog)) == 1


async def test_a_time_without_end_stops_no_other(link, database):
    database.sql("insert into tenure.jobs (id, state, kind, run_at) values (%s, 'scheduled', 'work', 'infinity')", uuid7())
    report = await Stager().run_once(link, database.term("stager"))
    assert (report.holds, report.rest) == (True, Stager.longest_rest)


async def test_a_rejection_without_any_row_is_not_attributed_to_rows(link, database, refuse, caplog):
    due(database, 100)
    refuse("jobs", "update", "", level="statement")
    with pytest.raises(Refused, match="the auditor says no"):
        await Stager().run_once(link, database.term("stager"))
    assert complaints(caplog) == []


# Requeuing


@pytest.mark.parametrize("workers", [1, 5])
async def test_a_job_that_cannot_be_requeued_blocks_no_other(link, database, refuse, caplog, workers):
    for number in range(workers):
        worker = database.worker()
        database.enqueue(*({} for _ in range(3)), *([{"kind": "bad"}] if number == 0 else []))
        database.claim(worker, kinds=["work", "bad"])
        database.condemn(worker)
    refuse("jobs", "update", "new.kind = 'bad'")
    await rounds(Reaper(Contact()), link, database)
    assert database.sql("select kind, state, count(*) from tenure.jobs group by 1, 2 order by 1") == [
        ("bad", "running", 1),
        ("work", "pending", 3 * workers),
    ]
    assert database.sql("select count(*) from tenure.workers") == [(1,)]  # the one that holds the bad job
    assert len(complaints(caplog)) == 1


async def test_a_worker_that_cannot_be_removed_blocks_no_other(link, database, refuse, caplog):
    refuse("queues", "insert", "new.name = 'bad'")
    for queue in ("bad", "good"):
        worker = database.worker(queues=[queue])
        database.enqueue({"queue": queue})
        database.claim(worker, queues=[queue])
        database.condemn(worker)
    await rounds(Reaper(Contact()), link, database)
    assert dict(database.sql("select queue, state from tenure.jobs")) == {"bad": "running", "good": "pending"}
    assert [hasattr(told, "worker_id") for told in complaints(caplog)] == [True]


async def test_a_job_whose_lease_ran_out_and_that_is_refused_blocks_no_other(link, database, refuse, caplog):
    database.enqueue({"kind": "bad"}, *({} for _ in range(GOOD)))
    database.claim(database.worker(), kinds=["work", "bad"], leases={"work": 0, "bad": 0})
    refuse("jobs", "update", "new.kind = 'bad'")
    await rounds(Reaper(Contact()), link, database)
    assert database.sql("select count(*) from tenure.jobs where state = 'pending'") == [(GOOD,)]
    assert len(complaints(caplog)) == 1


async def test_what_holds_up_requeuing_does_not_hold_up_leases_that_ran_out(link, database, refuse, caplog):
    dead = database.worker(queues=["bad"])
    database.condemn(dead)
    refuse("queues", "insert", "new.name = 'bad'")
    database.enqueue({})
    database.claim(database.worker(), leases={"work": 0})
    await rounds(Reaper(Contact()), link, database, count=1)
    assert database.sql("select state from tenure.jobs") == [("pending",)]


# Condemning


LONG_AGO = 1000.0
"""Seconds of unbroken contact: the reaper condemns."""


class OldContact(Contact):
    age = LONG_AGO


def dead_worker(database: Database) -> str:
    """Whose lease has ended, with two jobs."""
    worker = database.worker()
    database.enqueue({}, {})
    database.claim(worker)
    database.sql("update tenure.workers set expires_at = now() - interval '10 s' where id = %s", worker)
    return worker


@pytest.mark.parametrize("code", ["AU001", "08001", "55P03", "40001", "23514"])
async def test_a_worker_that_cannot_be_condemned_blocks_no_other_and_is_reported_once(link, database, refuse, caplog, code):
    ids = [dead_worker(database) for _ in range(5)]
    refuse("workers", "update", f"new.died_at is not null and new.id = '{ids[2]}'", code=code)
    await rounds(Reaper(OldContact()), link, database, count=3)
    assert database.sql("select state, count(*) from tenure.jobs group by 1 order by 1") == [("pending", 8), ("running", 2)]
    assert database.sql("select id::text, died_at from tenure.workers") == [(ids[2], None)]
    [told] = complaints(caplog)
    assert (told.worker_id, told.sqlstate) == (ids[2], code)


async def test_a_worker_that_cannot_be_condemned_does_not_make_the_reaper_busy(link, database, refuse):
    dead_worker(database)
    refuse("workers", "update", "new.died_at is not null")
    report = await Reaper(OldContact()).run_once(link, database.term("reaper"))
    assert report.rest >= 1.0


async def test_a_worker_without_a_row_that_cannot_have_one_blocks_no_other(link, database, refuse, caplog):
    ids = [dead_worker(database) for _ in range(3)]
    database.sql("delete from tenure.workers")
    condemned = dead_worker(database)
    database.condemn(condemned)
    refuse("workers", "insert", f"new.id = '{ids[1]}'")
    await rounds(Reaper(OldContact()), link, database)
    assert database.sql("select worker_id::text, state, count(*) from tenure.all_jobs group by 1, 2 order by 2") == [
        (None, "pending", 6),
        (ids[1], "running", 2),
    ]
    assert [told.worker_id for told in complaints(caplog) if hasattr(told, "worker_id")] == [ids[1]]


@pytest.mark.parametrize("when", ["insert", "update"])
async def test_what_holds_up_condemning_does_not_hold_up_requeuing(link, database, refuse, when):
    condemned = dead_worker(database)
    database.condemn(condemned)
    refuse("workers", when, "", level="statement")
    with pytest.raises(Refused, match="the auditor says no"):
        await Reaper(OldContact()).run_once(link, database.term("reaper"))
    assert database.sql("select distinct state from tenure.jobs") == [("pending",)]


async def test_a_reaper_of_an_older_term_condemns_around_no_refused_worker(link, database, refuse):
    ids = [dead_worker(database) for _ in range(3)]
    refuse("workers", "update", f"new.died_at is not null and new.id = '{ids[0]}'")
    reaper, term = Reaper(OldContact()), database.term("reaper")
    reaper._uncondemned._again_at[ids[0]] = isolation.time.monotonic() + 60
    database.end_term("reaper")
    database.term("reaper")
    assert not (await reaper.run_once(link, term)).holds
    assert database.sql("select count(*) from tenure.workers where died_at is not null") == [(0,)]


# Expired, blocked and waiting jobs


async def test_an_expired_job_that_cannot_be_canceled_blocks_no_other(link, database, refuse, caplog):
    [bad] = database.enqueue({"kind": "bad", "expires": 60})
    database.enqueue(*({"expires": 60} for _ in range(GOOD)))
    database.sql("update tenure.jobs set expires_at = now() - interval '1 s'")
    due(database)
    refuse("history", "insert", "new.kind = 'bad'")
    await rounds(Stager(), link, database, count=3)
    assert database.sql("select kind, state, count(*) from tenure.all_jobs group by 1, 2 order by 1, 2") == [
        ("bad", "pending", 1),
        ("work", "canceled", GOOD),
        ("work", "pending", 1),
    ]
    assert [told.job_id for told in complaints(caplog)] == [bad]


def waiting_for(database: Database, *chains: str) -> list[str]:
    """For each chain a job that waits for it."""
    return [job for chain in chains for job in database.enqueue({"after": [chain]})]


def end_all(database: Database) -> None:
    """Ends all pending jobs."""
    claim = database.claim(database.worker(), limit=100)
    database.run(jobs.finish(claim.finished()))


async def test_an_end_of_a_chain_that_cannot_be_recorded_blocks_no_other(link, database, refuse, caplog):
    chains = database.enqueue(*({} for _ in range(3)))
    bad, *good = waiting_for(database, *chains)
    resolver = Resolver()
    await rounds(resolver, link, database)
    end_all(database)
    refuse("chain_endings", "update", f"new.chain_id = '{chains[0]}' and new.resolved")
    await rounds(resolver, link, database, count=3)
    assert dict(database.sql("select id::text, state from tenure.jobs")) == {bad: "blocked", **dict.fromkeys(good, "pending")}
    assert [told.chain_id for told in complaints(caplog)] == [chains[0]]


async def test_a_job_that_cannot_be_unblocked_blocks_no_other(link, database, refuse, caplog):
    bad, *good = waiting_for(database, *database.enqueue(*({} for _ in range(3))))
    resolver = Resolver()
    await rounds(resolver, link, database)
    end_all(database)
    refuse("jobs", "update", f"new.id = '{bad}' and new.state = 'pending'")
    await rounds(resolver, link, database, count=3)
    assert dict(database.sql("select id::text, state from tenure.jobs")) == {bad: "blocked", **dict.fromkeys(good, "pending")}
    assert [told.job_id for told in complaints(caplog)] == [bad]


async def test_a_job_that_cannot_be_ended_because_of_its_blocker_blocks_no_other(link, database, refuse, caplog):
    chains = database.enqueue(*({} for _ in range(3)))
    bad, *good = waiting_for(database, *chains)
    resolver = Resolver()
    await rounds(resolver, link, database)
    database.run(jobs.cancel(chains, error="canceled"))
    refuse("history", "insert", f"new.id = '{bad}'")
    await rounds(resolver, link, database, count=3)
    assert database.sql("select id::text, state from tenure.jobs") == [(bad, "blocked")]
    assert {job for (job,) in database.sql("select id::text from tenure.history where state = 'canceled'")} == {*chains, *good}
    assert [told.job_id for told in complaints(caplog)] == [bad]


def workflow_that_waits(database: Database, event: str) -> str:
    [job] = database.enqueue({})
    claim = database.claim(database.worker())
    wait = {"step": event, "event": event, "key": ""}
    outcome = {"id": job, "claim_id": claim.id, "steps": [], "waits": [wait], "chains": [], "missing": 0}
    assert database.run(workflows.suspend(json.dumps([outcome])))
    return job


async def test_an_event_that_cannot_be_placed_blocks_no_other(link, database, refuse, caplog):
    waiting = {workflow_that_waits(database, event): event for event in ("bad", "good", "fine")}
    refuse("events", "update", "new.name = 'bad'")
    database.run(events.emit(json.dumps([{"name": event} for event in waiting.values()])))
    await rounds(Resolver(), link, database, count=3)
    states = {waiting[job]: state for job, state in database.sql("select id::text, state from tenure.jobs")}
    assert states == {"bad": "waiting", "good": "pending", "fine": "pending"}
    [(bad,)] = database.sql("select id from tenure.events where name = 'bad'")
    assert [str(told.id) for told in complaints(caplog)] == [str(bad)]


async def test_a_workflow_that_cannot_be_woken_blocks_no_other(link, database, refuse, caplog):
    bad, good = workflow_that_waits(database, "paid"), workflow_that_waits(database, "paid")
    refuse("jobs", "update", f"new.id = '{bad}' and new.state = 'pending'")
    database.run(events.emit('[{"name": "paid"}]'))
    await rounds(Resolver(), link, database, count=3)
    assert dict(database.sql("select id::text, state from tenure.jobs")) == {bad: "waiting", good: "pending"}
    assert [told.job_id for told in complaints(caplog)] == [bad]


# Counting and cleaning


async def test_a_count_that_cannot_be_added_blocks_no_other(link, database, refuse, caplog):
    for queue in ("good", "bad", "good"):
        database.sql("insert into tenure.tallies (queue, kind, what, jobs) values (%s, 'k', 'completed', 1)", queue)
    refuse("counters", "insert", "new.queue = 'bad'")
    await rounds(Rollup(), link, database)
    assert database.sql("select queue, jobs from tenure.counters") == [("good", 2)]
    assert database.sql("select queue from tenure.tallies") == [("bad",)]
    assert len(complaints(caplog)) == 1


CLEANED = {
    "audit": (
        (
            "insert into tenure.audit (at, request_id, phase, actor, source, action)"
            " select now() - interval '400 days', gen_random_uuid(), 'requested', n::text, 'api', 'x'"
            " from generate_series(1, 10) n"
        ),
        "old.actor = '4'",
    ),
    "keys": (
        (
            "insert into tenure.keys select 'k', n::text, gen_random_uuid(), 'window', now(), now() - interval '1 day', ''"
            " from generate_series(1, 10) n"
        ),
        "old.key = '4'",
    ),
    "logs": (
        (
            "insert into tenure.logs select gen_random_uuid(), n, 1, 1, now() - interval '30 days', '[]'"
            " from generate_series(1, 10) n"
        ),
        "old.fence = 4",
    ),
    "progress": (
        (
            "insert into tenure.progress select gen_random_uuid(), n, now() - interval '30 days', now(), 5"
            " from generate_series(1, 10) n"
        ),
        "old.fence = 4",
    ),
    "incidents": (
        (
            "insert into tenure.incidents (job_id, what, at, fence)"
            " select gen_random_uuid(), 'failed', now() - interval '30 days', n from generate_series(1, 10) n"
        ),
        "old.fence = 4",
    ),
    "steps": (
        (
            "insert into tenure.steps (job_id, name, number, what, state, fence)"
            " select lpad(n::text, 32, '0')::uuid, 's', n, 'step', 'done', 1 from generate_series(1, 10) n"
        ),
        "old.number = 4",
    ),
    "events": (
        (
            "insert into tenure.events (name, key, at, position)"
            " select 'paid', n::text, now() - interval '30 days', n from generate_series(1, 10) n"
        ),
        "old.key = '4'",
    ),
    "waits": (
        (
            "insert into tenure.waits (job_id, step, event, key, fence)"
            " select gen_random_uuid(), 's', 'paid', '', n from generate_series(1, 10) n"
        ),
        "old.fence = 4",
    ),
    "blocked": (
        (
            "insert into tenure.blocked (job_id, total, missing)"
            " select lpad(n::text, 32, '0')::uuid, n, null from generate_series(1, 10) n"
        ),
        "old.total = 4",
    ),
    "chain_endings": (
        (
            "insert into tenure.chain_endings (chain_id, kind, state, ended_at, resolved)"
            " select lpad(n::text, 32, '0')::uuid, n::text, 'completed', now() - interval '1 day', true"
            " from generate_series(1, 10) n"
        ),
        "old.kind = '4'",
    ),
    "watches": (
        "insert into tenure.watches select gen_random_uuid(), now() - n * interval '1 day' from generate_series(1, 10) n",
        "old.until between now() - interval '4 days 1 hour' and now() - interval '3 days 23 hours'",
    ),
    "counters": (
        (
            "insert into tenure.counters (hour, queue, kind, what, jobs)"
            " select now() - interval '100 days', 'q', n::text, 'completed', 1 from generate_series(1, 10) n"
        ),
        "old.kind = '4'",
    ),
    "minutes": (
        "insert into tenure.minutes select now() - interval '2 days', 'q', n::text, 'completed', 1 from generate_series(1, 10) n",
        "old.kind = '4'",
    ),
    "fleet_minutes": (
        (
            "insert into tenure.fleet_minutes select now() - interval '2 days' - n * interval '1 minute', n, 1, 0, 0, 0, null,"
            " '[]', '[]' from generate_series(1, 10) n"
        ),
        "old.workers = 4",
    ),
    "latencies": (
        (
            "insert into tenure.latencies select now() - interval '2 days', 'minute', 'q', n::text, 'ran', 5, 1"
            " from generate_series(1, 10) n"
        ),
        "old.kind = '4'",
    ),
    "jobs": (
        (
            "insert into tenure.jobs (id, state, position, kind, started_at)"
            " select gen_random_uuid(), 'dead_letter', -1, n::text, now() - interval '40 days' from generate_series(1, 10) n"
        ),
        "old.kind = '4'",
    ),
    "history_default": (
        (
            "insert into tenure.history (id, fence, enqueued_at, finished_at, attempt, max_attempts, priority, crashes, state,"
            " kind, queue, input) select gen_random_uuid(), 1, now(), now() - interval '400 days', 1, 1, 50, 0, 'completed',"
            " n::text, 'q', '{}' from generate_series(1, 10) n"
        ),
        "old.kind = '4'",
    ),
}


@pytest.mark.parametrize("table", CLEANED)
async def test_a_row_that_cannot_be_removed_blocks_no_other_row_or_table(link, database, refuse, caplog, table):
    make, bad = CLEANED[table]
    database.sql(make)
    other = "watches" if table != "watches" else "minutes"
    database.sql(CLEANED[other][0])
    refuse(table, "delete", bad)
    await rounds(Cleaner(7 * DAY, 30 * DAY), link, database)
    assert database.sql(f"select count(*) from tenure.{table}") == [(1,)]
    assert database.sql(f"select count(*) from tenure.{other}") == [(0,)]
    assert len(complaints(caplog)) == 1


STILL_USED = {
    "blocked": (
        "insert into tenure.jobs (id, state, position, kind)"
        " select lpad(n::text, 32, '0')::uuid, 'blocked', -2, 'work' from generate_series(1, 3) n"
    ),
    "chain_endings": "update tenure.chain_endings set ended_at = now() where kind in ('1', '2', '3')",
}


@pytest.mark.parametrize("table", STILL_USED)
async def test_a_table_that_is_checked_row_by_row_is_checked_to_its_end_around_a_bad_row(link, database, refuse, table):
    """In batches. The first ones have nothing to remove, and one of them has the bad row."""
    make, bad = CLEANED[table]
    database.sql(make)
    database.sql(STILL_USED[table])
    refuse(table, "delete", bad)
    cleaner = Cleaner(7 * DAY, 30 * DAY)
    cleaner.batch = 2
    await rounds(cleaner, link, database, count=12)
    assert database.sql(f"select count(*) from tenure.{table}") == [(4,)]


async def test_a_kind_with_its_own_retention_is_cleaned_around_a_bad_row(link, database, refuse, caplog):
    database.sql("insert into tenure.retentions values ('brief', '1 minute')")
    database.sql(
        "insert into tenure.history (id, fence, enqueued_at, finished_at, attempt, max_attempts, priority, crashes, state, kind,"
        " queue, input) select gen_random_uuid(), n, now(), now() - interval '1 hour', 1, 1, 50, 0, 'completed', 'brief', 'q',"
        " '{}' from generate_series(1, 10) n"
    )
    refuse("history", "delete", "old.fence = 4")
    await rounds(Cleaner(7 * DAY, 30 * DAY), link, database)
    assert database.sql("select fence from tenure.history") == [(4,)]


async def test_a_table_that_is_locked_stops_no_other_part_of_the_cleaner(database_target, database, other, caplog):
    link = DutyLink(database_target, lock_timeout=0.1)
    for table in ("keys", "logs", "watches"):
        database.sql(CLEANED[table][0])
    cleaner = Cleaner(7 * DAY, 30 * DAY)
    try:
        with other.connection.transaction():
            other.sql("lock table tenure.logs, tenure.history in access exclusive mode")
            report = await cleaner.run_once(link, database.term("cleaner"))
            assert (report.holds, report.rest, report.findings) == (True, Cleaner.again, [])
        assert database.sql("select count(*) from tenure.keys union all select count(*) from tenure.watches") == [(0,), (0,)]
        assert database.sql("select count(*) from tenure.logs") == [(10,)]
    finally:
        await link.close()


# Schedules


async def test_a_schedule_that_is_refused_once_is_carried_out_when_that_has_passed(link, database, refuse, monkeypatch, caplog):
    monkeypatch.setattr(cron_duty, "AGAIN_AFTER", 0.0)
    plan(database, "bad", every="1s")
    plan(database, "good", every="1s")
    database.sql("update tenure.schedules set since = now() - interval '5 s'")
    refuse("ticks", "insert", "new.schedule = 'bad'")
    cron = Cron(7 * DAY)
    await rounds(cron, link, database)
    recorded = "select distinct schedule from tenure.ticks order by 1"
    assert database.sql(recorded) == [("good",)]
    database.sql("drop trigger audit on tenure.ticks")
    await rounds(cron, link, database)
    assert database.sql(recorded) == [("bad",), ("good",)]
    assert len(complaints(caplog)) == 1


async def test_a_queued_time_that_cannot_be_enqueued_blocks_no_other(link, database, refuse, caplog):
    for name in ("bad", "good"):
        plan(database, name, overlap="queue", every="1s")
        database.sql(
            "insert into tenure.ticks (schedule, planned_at, outcome) values (%s, now() - interval '1 hour', 'queued')", name
        )
    database.sql("update tenure.schedules set since = now(), next_at = now() + interval '1 hour'")
    refuse("jobs", "insert", "new.enqueued_by = 'schedule bad'")
    await rounds(Cron(7 * DAY), link, database)
    assert database.sql("select schedule, outcome from tenure.ticks order by 1") == [("bad", "queued"), ("good", "enqueued")]
    finish(database)
    assert len(complaints(caplog)) == 1


async def test_a_tick_that_cannot_be_removed_blocks_no_other(link, database, refuse, caplog):
    for number in range(5):
        database.sql(
            "insert into tenure.ticks (schedule, planned_at, outcome, recorded_at)"
            " values (%s, now(), 'skipped', now() - interval '9 days')",
            f"s{number}",
        )
    refuse("ticks", "delete", "old.schedule = 's3'")
    await rounds(Cron(7 * DAY), link, database)
    assert database.sql("select schedule from tenure.ticks") == [("s3",)]


@pytest.mark.parametrize("code", ["AU001", "08001", "55P03"])
async def test_a_schedule_that_cannot_be_rewound_blocks_no_other(link, database, refuse, caplog, code):
    for name in ("a", "bad", "c"):
        plan(database, name, every="60s")
    database.sql("update tenure.schedules set since = now() + interval '1 day', next_at = now() + interval '1 day'")
    refuse("schedules", "update", "new.name = 'bad'", code=code)
    cron = Cron(7 * DAY)
    await rounds(cron, link, database, count=1)
    ahead = "select name from tenure.schedules where since > now() + interval '1 hour'"
    assert database.sql(ahead) == [("bad",)]
    cron._verify_at = 0.0
    await rounds(cron, link, database, count=1)
    assert [told.schedule for told in complaints(caplog)] == ["bad"]


async def test_a_schedule_that_cannot_be_retired_blocks_no_other(link, database, refuse, caplog):
    for name in ("a", "bad", "c"):
        plan(database, name, every="1h")
    database.sql("update tenure.schedules set owner = 'shop:app', since = now(), next_at = now() + interval '1 hour'")
    database.run(schedules.declare_app(str(uuid4()), "shop:app", kinds=[], schedules=[]))
    refuse("schedules", "update", "new.name = 'bad' and new.retired_at is not null")
    await rounds(Cron(7 * DAY), link, database, count=1)
    assert database.sql("select name from tenure.schedules where retired_at is null") == [("bad",)]
    assert [told.schedule for told in complaints(caplog)] == ["bad"]


BY_THE_OLD_CLOCK = {
    "workers": "new.concurrency = 7",
    "jobs": "new.kind = 'bad'",
    "starts": "new.limit_group = 'bad'",
}


@pytest.mark.parametrize("table", BY_THE_OLD_CLOCK)
async def test_a_row_that_cannot_follow_the_clock_blocks_no_other(link, database, refuse, caplog, table):
    hour = "interval '1 hour'"
    bad = database.worker(ttl=15)
    database.sql("update tenure.workers set concurrency = 7 where id = %s", bad)
    database.enqueue({}, {"kind": "bad"})
    database.claim(database.worker(ttl=15), kinds=["work", "bad"], leases={"work": 120, "bad": 120})
    database.sql(f"update tenure.workers set heartbeat_at = heartbeat_at + {hour}, expires_at = expires_at + {hour}")
    database.sql(f"update tenure.jobs set lease_until = lease_until + {hour}")
    database.sql(f"update tenure.claims set at = at + {hour}")
    for group in ("good", "bad"):
        times = f"now() + {hour}, now() + {hour}, now() + {hour} + interval '1 minute'"
        database.sql(f"insert into tenure.starts select %s, {times}, 5", group)
    refuse(table, "update", BY_THE_OLD_CLOCK[table])
    cron = Cron(7 * DAY)
    await rounds(cron, link, database, count=1)
    soon = "now() + interval '30 minutes'"
    ahead = (
        f"select (select count(*) from tenure.workers where expires_at > {soon}),"
        f" (select count(*) from tenure.jobs where lease_until > {soon}),"
        f" (select count(*) from tenure.starts where ended > {soon})"
    )
    assert database.sql(ahead) == [tuple(int(name == table) for name in BY_THE_OLD_CLOCK)]
    [told] = complaints(caplog)
    assert told.row.startswith(table)

    # It is tried again, though the clock was not set back another time.
    database.sql(f"drop trigger audit on tenure.{table}")
    cron._ahead._again_at.clear()
    cron._verify_at = 0.0
    await rounds(cron, link, database, count=1)
    assert database.sql(ahead) == [(0, 0, 0)]


async def test_a_clock_that_cannot_be_followed_does_not_hold_up_schedules(link, database, refuse):
    plan(database, "s", every="60s")
    database.sql("update tenure.schedules set since = now() + interval '1 day', next_at = now() + interval '1 day'")
    refuse("starts", "update", "", level="statement")
    with pytest.raises(Refused, match="the auditor says no"):
        await Cron(7 * DAY).run_once(link, database.term("cron"))
    assert database.sql("select since <= now() from tenure.schedules") == [(True,)]
