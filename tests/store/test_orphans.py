"""No job is ever held by a worker that is gone: a condemnation waits for the claim under way, or prevents it."""

from __future__ import annotations

import asyncio
import json
from contextlib import contextmanager
from threading import Event, Thread
from uuid import uuid4

import pytest

from tenure.leader.requeue import requeue_jobs
from tenure.store import jobs, limits, workers
from tenure.store.link import Link
from tests.store.database import Database
from tests.store.locks import meanwhile, waits_for_a_lock

ORPHANS = """
    select count(*)
      from tenure.jobs j left join tenure.claims c on c.id = j.claim_id left join tenure.workers w on w.id = c.worker_id
     where j.state = 'running' and (w.id is null or w.died_at is not null)"""


async def test_a_condemnation_waits_for_the_claim_under_way(dsn, database, other):
    supervisor = str(uuid4())
    worker = database.worker(supervisor=supervisor)
    [job_id] = database.enqueue({})
    with Database(dsn) as third:
        with other.connection.transaction():
            assert other.claim(worker).ids == [job_id]
            condemned = meanwhile(lambda: third.run(workers.condemn(worker, supervisor, "crashed")))
            await waits_for_a_lock(database)
        condemned()
    assert database.sql(ORPHANS) == [(1,)]
    assert database.return_jobs()[:2] == (1, 0)
    assert database.sql(ORPHANS) == [(0,)]
    assert database.job(job_id)["state"] == "pending"
    assert database.sql("select count(*) from tenure.workers") == [(0,)]


async def test_a_condemnation_under_way_prevents_the_claim(dsn, database, other):
    worker = database.worker()
    database.enqueue({})
    with Database(dsn) as third:
        with other.connection.transaction():
            other.condemn(worker)
            claimed = meanwhile(lambda: third.claim(worker))
            await waits_for_a_lock(database)
        assert (claimed().ids, claimed().reply.holds) == ([], False)
    assert database.return_jobs()[:2] == (0, 0)
    assert database.sql(ORPHANS) == [(0,)]


def test_the_reaper_leaves_a_worker_that_is_claiming_for_its_next_round(database, other):
    worker = database.worker()
    database.enqueue({})
    term = database.term("reaper")
    with other.connection.transaction():
        assert len(other.claim(worker).ids) == 1
        # Its lease runs out before the claim commits: seen by the reaper's own clock.
        later = database.sql("select now() + interval '1 hour'")[0][0]
        holds, condemned, *_ = database.run(workers.condemn_expired(term, reap=True, now=later))[0]
        assert (holds, condemned) == (True, 0)
    assert database.run(workers.condemn_expired(term, reap=True, now=later))[0][:3] == (True, 1, True)
    assert database.return_jobs()[:2] == (1, 0)
    assert database.sql(ORPHANS) == [(0,)]


def test_a_condemned_worker_cannot_renew_its_lease(database):
    condemned, living = database.worker(), database.worker()
    database.condemn(condemned)
    before = database.sql("select expires_at from tenure.workers where id = %s", condemned)
    [(renewed, *_)] = database.run(workers.renew([condemned, living], ["default"], 900.0))
    assert renewed == [living]
    assert database.sql("select expires_at from tenure.workers where id = %s", condemned) == before


def test_the_reaper_leaves_a_worker_that_is_renewing_its_lease(dsn, database, other):
    worker = database.worker(ttl=0)
    term = database.term("reaper")
    with Database(dsn, lock_timeout="2s") as third, other.connection.transaction():
        other.run(workers.renew([worker], ["default"], 600.0))
        assert third.run(workers.condemn_expired(term, reap=True))[0][:3] == (True, 0, False)
    assert database.run(workers.condemn_expired(term, reap=True))[0][:3] == (True, 0, False)


def test_a_claim_that_was_cut_off_leaves_nothing_and_makes_the_others_search_again(database, other):
    worker, third = database.worker(queues=["default", "mail"]), database.worker()
    [job_id] = database.enqueue({})
    with other.connection.transaction(force_rollback=True):
        assert other.claim(worker).ids == [job_id]
    before = database.claim(third, lanes=[]).reply.returns
    database.condemn(worker)
    assert database.return_jobs()[:3] == (0, 0, False)
    after = database.claim(third, lanes=[]).reply.returns
    assert before == {}
    assert after == {"default": 1, "mail": 1}
    assert database.job(job_id)["state"] == "pending"


def test_a_worker_stays_as_long_as_a_locked_job_is_its_own(database, other):
    worker = database.worker()
    first, second = database.enqueue({}, {})
    database.claim(worker)
    database.condemn(worker)
    with other.connection.transaction():
        other.sql("select 1 from tenure.jobs where id = %s for no key update", first)
        assert database.return_jobs()[:2] == (1, 0)
        assert database.job(second)["state"] == "pending"
        assert database.sql("select count(*) from tenure.workers") == [(1,)]
    assert database.return_jobs()[:2] == (1, 0)
    assert database.sql("select count(*) from tenure.workers") == [(0,)]
    assert database.job(first)["state"] == "pending"


def test_many_jobs_are_requeued_page_by_page(database):
    worker = database.worker()
    database.enqueue(*({} for _ in range(25)))
    database.claim(worker, limit=25)
    database.condemn(worker)
    pages = [database.run(jobs.return_jobs(None, limit=10))[0][:3] for _ in range(3)]
    assert pages == [(10, 0, True), (10, 0, True), (5, 0, False)]
    assert database.sql("select count(*) from tenure.workers") == [(0,)]


def test_a_crash_is_counted_but_uses_no_attempt_and_the_third_dead_letters_the_job(database):
    [job_id] = database.enqueue({})
    for crashes in (1, 2, 3):
        worker = database.worker()
        database.claim(worker)
        database.condemn(worker)
        database.return_jobs()
        job = database.job(job_id)
        assert (job["crashes"], job["attempt"], job["fence"]) == (crashes, 0, crashes)
        assert job["state"] == ("dead_letter" if crashes == 3 else "pending")
    assert "died 3 times" in job["error"]


def test_a_worker_that_stopped_in_order_is_not_a_crash(database):
    [job_id] = database.enqueue({})
    for _ in range(4):
        worker = database.worker()
        database.claim(worker)
        database.condemn(worker, "stopped")
        database.return_jobs(worker)
    assert (database.job(job_id)["state"], database.job(job_id)["crashes"]) == ("pending", 0)


def test_claims_condemnations_and_returns_at_the_same_time_leave_no_orphan(dsn, database):
    database.enqueue(*({"max_attempts": 1000} for _ in range(60)))
    over = Event()

    def claim_for_ever() -> None:
        with Database(dsn) as mine:
            worker = mine.worker()
            while not over.is_set():
                if not mine.claim(worker, limit=3).reply.holds:
                    worker = mine.worker()

    threads = [Thread(target=claim_for_ever) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(60):
            database.sql(
                "update tenure.workers set died_at = now(), died_how = 'stopped' where random() < 0.5 and died_at is null"
            )
            database.return_jobs()
    finally:
        over.set()
        for thread in threads:
            thread.join()
    database.sql("update tenure.workers set died_at = now(), died_how = 'stopped' where died_at is null")
    while database.sql("select count(*) from tenure.workers") != [(0,)]:
        database.return_jobs()
    assert database.sql("select state, count(*) from tenure.jobs group by state") == [("pending", 60)]


def test_a_renewal_returns_when_a_duty_may_be_free_and_ignores_leases_that_expired_long_ago(database):
    worker = database.worker()

    def told() -> float | None:
        return database.run(workers.renew([worker], ["default"], 600.0))[0][2]

    assert told() is None
    database.term("stager", ttl=60.0)
    assert 50 < told() <= 60
    database.term("reaper", ttl=10.0)
    assert 5 < told() <= 10
    database.end_term("reaper")
    assert -5 < told() <= 0
    database.sql("update tenure.leases set expires_at = now() - interval '2 minutes' where name = 'reaper'")
    assert 50 < told() <= 60


PAUSE = """
    create role {role};
    grant usage on schema tenure to {role};
    grant all on all tables in schema tenure to {role};
    grant all on all sequences in schema tenure to {role};
    create function public.pause() returns boolean language plpgsql
        as 'begin perform pg_advisory_xact_lock_shared(7); return true; end';
    alter table tenure.{table} enable row level security;
    create policy pause on tenure.{table} using (public.pause());"""


@contextmanager
def paused_after_its_snapshot(dsn, database, table="workers"):
    """A connection whose statements take their snapshot and then wait, before they read or lock anything of this table."""
    role = f"paused_{uuid4().hex[:8]}"
    database.connection.execute(PAUSE.format(role=role, table=table).encode(), prepare=False)
    try:
        with Database(dsn) as paused:
            paused.sql(f"set role {role}")
            yield paused
    finally:
        database.connection.execute(f"drop owned by {role}; drop role {role}".encode(), prepare=False)


def heartbeat(database, claim):
    note = json.dumps([{"id": claim.ids[0], "claim_id": claim.id, "lease": 3600}])
    assert database.run(jobs.write_updates(note, 200))


def new_limit(database, claim):
    database.run(limits.declare({"kind:work": {"concurrency": 5}}))
    assert database.run(limits.adopt_held(claim.worker_id)) == [(1, None)]


@pytest.mark.parametrize("change", [heartbeat, new_limit])
async def test_a_job_that_changes_while_it_is_being_returned_keeps_its_worker_until_it_is_returned(fresh_dsn, change):
    with Database(fresh_dsn) as database, Database(fresh_dsn) as other, paused_after_its_snapshot(fresh_dsn, database) as paused:
        worker = database.worker()
        database.enqueue({})
        claim = database.claim(worker)
        database.condemn(worker)
        database.sql("select pg_advisory_lock(7)")
        returning = meanwhile(paused.return_jobs)
        await waits_for_a_lock(other)
        change(other, claim)
        database.sql("select pg_advisory_unlock(7)")

        # The row that changed is seen, and not returned: there is more to do, and the worker is still known.
        assert returning()[:3] == (0, 0, True)
        assert database.sql("select id::text from tenure.workers") == [(worker,)]
        assert database.return_jobs()[:3] == (1, 0, False)
        assert database.sql(ORPHANS) == [(0,)]
        assert database.sql("select count(*) from tenure.workers") == [(0,)]


async def test_a_heartbeat_that_meets_a_changed_row_is_not_reported_as_written(fresh_dsn):
    with (
        Database(fresh_dsn) as database,
        Database(fresh_dsn) as other,
        paused_after_its_snapshot(fresh_dsn, database, "jobs") as paused,
    ):
        worker = database.worker()
        database.enqueue({})
        claim = database.claim(worker, leases={"work": 60})
        note = json.dumps([{"id": claim.ids[0], "claim_id": claim.id, "lease": 3600, "percent": 5}])
        database.sql("select pg_advisory_lock(7)")
        heard = meanwhile(lambda: paused.run(jobs.write_updates(note, 200)))
        await waits_for_a_lock(other)
        new_limit(other, claim)
        database.sql("select pg_advisory_unlock(7)")

        extended = "select lease_until > now() + interval '30 minutes' from tenure.jobs"
        assert (heard(), database.sql(extended)) == ([], [(False,)])
        assert (database.run(jobs.write_updates(note, 200)), database.sql(extended)) == ([(claim.ids[0], False)], [(True,)])


def test_jobs_held_by_a_worker_without_a_row_are_requeued(database):
    lost, living = database.worker(), database.worker()
    [first, second] = database.enqueue({}, {})
    database.claim(lost, limit=1)
    database.claim(living, limit=1)
    database.sql("delete from tenure.workers where id = %s", lost)
    term = database.term("reaper")

    assert database.run(workers.condemn_unknown(term)) == [(True, [lost], None)]
    assert database.run(workers.condemn_unknown(term)) == [(True, [], None)]
    assert database.return_jobs()[:2] == (1, 0)

    assert (database.job(first)["state"], database.job(first)["crashes"]) == ("pending", 1)
    assert database.job(second)["state"] == "running"
    assert database.sql("select id::text from tenure.workers") == [(living,)]


async def test_a_trigger_that_suppresses_every_return_does_not_make_the_reaper_turn_for_ever(database_target, database):
    worker = database.worker()
    database.enqueue({})
    database.claim(worker)
    database.condemn(worker)
    database.sql("create function public.keep() returns trigger language plpgsql as $$ begin return null; end $$")
    database.sql("create trigger keep before update on tenure.jobs for each row execute function public.keep()")
    try:
        async with Link(database_target, "reaper") as link, asyncio.timeout(10):
            assert await requeue_jobs(link, None) == 0
    finally:
        database.sql("drop trigger keep on tenure.jobs")
        database.sql("drop function public.keep()")
