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
from tests.store.desk import Desk
from tests.store.locks import meanwhile, waits_for_a_lock

ORPHANS = """
    select count(*) from tenure.jobs j left join tenure.workers w on w.id = j.worker_id
     where j.state = 'running' and (w.id is null or w.died_at is not null)"""


async def test_a_condemnation_waits_for_the_claim_under_way(dsn, desk, other):
    supervisor = str(uuid4())
    worker = desk.worker(supervisor=supervisor)
    [job_id] = desk.enqueue({})
    with Desk(dsn) as third:
        with other.connection.transaction():
            assert other.claim(worker).ids == [job_id]
            condemned = meanwhile(lambda: third.run(workers.condemn(worker, supervisor, "crashed")))
            await waits_for_a_lock(desk)
        condemned()
    assert desk.sql(ORPHANS) == [(1,)]
    assert desk.return_jobs()[:2] == (1, 0)
    assert desk.sql(ORPHANS) == [(0,)]
    assert desk.job(job_id)["state"] == "pending"
    assert desk.sql("select count(*) from tenure.workers") == [(0,)]


async def test_a_condemnation_under_way_prevents_the_claim(dsn, desk, other):
    worker = desk.worker()
    desk.enqueue({})
    with Desk(dsn) as third:
        with other.connection.transaction():
            other.condemn(worker)
            claimed = meanwhile(lambda: third.claim(worker))
            await waits_for_a_lock(desk)
        assert (claimed().ids, claimed().signals.holds) == ([], False)
    assert desk.return_jobs()[:2] == (0, 0)
    assert desk.sql(ORPHANS) == [(0,)]


def test_the_reaper_leaves_a_worker_that_is_claiming_for_its_next_round(desk, other):
    worker = desk.worker()
    desk.enqueue({})
    term = desk.term("reaper")
    with other.connection.transaction():
        assert len(other.claim(worker).ids) == 1
        # Its lease runs out before the claim commits: seen by the reaper's own clock.
        later = desk.sql("select now() + interval '1 hour'")[0][0]
        holds, condemned, *_ = desk.run(workers.condemn_expired(term, reap=True, now=later))[0]
        assert (holds, condemned) == (True, 0)
    assert desk.run(workers.condemn_expired(term, reap=True, now=later))[0][:3] == (True, 1, True)
    assert desk.return_jobs()[:2] == (1, 0)
    assert desk.sql(ORPHANS) == [(0,)]


def test_a_condemned_worker_cannot_renew_its_lease(desk):
    condemned, living = desk.worker(), desk.worker()
    desk.condemn(condemned)
    before = desk.sql("select expires_at from tenure.workers where id = %s", condemned)
    [(renewed, *_)] = desk.run(workers.renew([condemned, living], ["default"], 900.0))
    assert renewed == [living]
    assert desk.sql("select expires_at from tenure.workers where id = %s", condemned) == before


def test_the_reaper_leaves_a_worker_that_is_renewing_its_lease(dsn, desk, other):
    worker = desk.worker(ttl=0)
    term = desk.term("reaper")
    with Desk(dsn, lock_timeout="2s") as third, other.connection.transaction():
        other.run(workers.renew([worker], ["default"], 600.0))
        assert third.run(workers.condemn_expired(term, reap=True))[0][:3] == (True, 0, False)
    assert desk.run(workers.condemn_expired(term, reap=True))[0][:3] == (True, 0, False)


def test_a_claim_that_was_cut_off_leaves_nothing_and_tells_the_others_to_look_again(desk, other):
    worker, third = desk.worker(queues=["default", "mail"]), desk.worker()
    [job_id] = desk.enqueue({})
    with other.connection.transaction(force_rollback=True):
        assert other.claim(worker).ids == [job_id]
    before = desk.claim(third, lanes=[]).signals.returns
    desk.condemn(worker)
    assert desk.return_jobs()[:3] == (0, 0, False)
    after = desk.claim(third, lanes=[]).signals.returns
    assert before == {}
    assert after == {"default": 1, "mail": 1}
    assert desk.job(job_id)["state"] == "pending"


def test_a_worker_stays_as_long_as_a_locked_job_is_its_own(desk, other):
    worker = desk.worker()
    first, second = desk.enqueue({}, {})
    desk.claim(worker)
    desk.condemn(worker)
    with other.connection.transaction():
        other.sql("select 1 from tenure.jobs where id = %s for no key update", first)
        assert desk.return_jobs()[:2] == (1, 0)
        assert desk.job(second)["state"] == "pending"
        assert desk.sql("select count(*) from tenure.workers") == [(1,)]
    assert desk.return_jobs()[:2] == (1, 0)
    assert desk.sql("select count(*) from tenure.workers") == [(0,)]
    assert desk.job(first)["state"] == "pending"


def test_many_jobs_come_back_page_by_page(desk):
    worker = desk.worker()
    desk.enqueue(*({} for _ in range(25)))
    desk.claim(worker, limit=25)
    desk.condemn(worker)
    pages = [desk.run(jobs.return_jobs(None, limit=10))[0][:3] for _ in range(3)]
    assert pages == [(10, 0, True), (10, 0, True), (5, 0, False)]
    assert desk.sql("select count(*) from tenure.workers") == [(0,)]


def test_a_crash_is_counted_but_is_no_attempt_and_the_third_sets_the_job_aside(desk):
    [job_id] = desk.enqueue({})
    for crashes in (1, 2, 3):
        worker = desk.worker()
        desk.claim(worker)
        desk.condemn(worker)
        desk.return_jobs()
        job = desk.job(job_id)
        assert (job["crashes"], job["attempt"], job["fence"]) == (crashes, 0, crashes)
        assert job["state"] == ("dead_letter" if crashes == 3 else "pending")
    assert "died 3 times" in job["error"]


def test_a_worker_that_stopped_in_order_is_no_crash(desk):
    [job_id] = desk.enqueue({})
    for _ in range(4):
        worker = desk.worker()
        desk.claim(worker)
        desk.condemn(worker, "stopped")
        desk.return_jobs(worker)
    assert (desk.job(job_id)["state"], desk.job(job_id)["crashes"]) == ("pending", 0)


def test_claims_condemnations_and_returns_at_the_same_time_leave_no_orphan(dsn, desk):
    desk.enqueue(*({"max_attempts": 1000} for _ in range(60)))
    over = Event()

    def claim_for_ever() -> None:
        with Desk(dsn) as mine:
            worker = mine.worker()
            while not over.is_set():
                if not mine.claim(worker, limit=3).signals.holds:
                    worker = mine.worker()

    threads = [Thread(target=claim_for_ever) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(60):
            desk.sql("update tenure.workers set died_at = now(), died_how = 'stopped' where random() < 0.5 and died_at is null")
            desk.return_jobs()
    finally:
        over.set()
        for thread in threads:
            thread.join()
    desk.sql("update tenure.workers set died_at = now(), died_how = 'stopped' where died_at is null")
    while desk.sql("select count(*) from tenure.workers") != [(0,)]:
        desk.return_jobs()
    assert desk.sql("select state, count(*) from tenure.jobs group by state") == [("pending", 60)]


def test_a_renewal_tells_when_a_duty_may_be_free_and_forgets_those_that_nobody_wants(desk):
    worker = desk.worker()

    def told() -> float | None:
        return desk.run(workers.renew([worker], ["default"], 600.0))[0][2]

    assert told() is None
    desk.term("stager", ttl=60.0)
    assert 50 < told() <= 60
    desk.term("reaper", ttl=10.0)
    assert 5 < told() <= 10
    desk.end_term("reaper")
    assert -5 < told() <= 0
    desk.sql("update tenure.leases set expires_at = now() - interval '2 minutes' where name = 'reaper'")
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
def paused_after_its_snapshot(dsn, desk, table="workers"):
    """A connection whose statements take their snapshot and then wait, before they read or lock anything of this table."""
    role = f"paused_{uuid4().hex[:8]}"
    desk.connection.execute(PAUSE.format(role=role, table=table).encode(), prepare=False)
    try:
        with Desk(dsn) as paused:
            paused.sql(f"set role {role}")
            yield paused
    finally:
        desk.connection.execute(f"drop owned by {role}; drop role {role}".encode(), prepare=False)


def heartbeat(desk, claim):
    note = json.dumps([{"id": claim.ids[0], "claim_id": claim.id, "lease": 3600}])
    assert desk.run(jobs.note(note, 200))


def new_limit(desk, claim):
    desk.run(limits.declare({"kind:work": {"concurrency": 5}}))
    assert desk.run(limits.adopt_held(claim.worker_id)) == [(1, None)]


@pytest.mark.parametrize("change", [heartbeat, new_limit])
async def test_a_job_that_changes_while_it_is_being_returned_keeps_its_worker_until_it_is_returned(fresh_dsn, change):
    with Desk(fresh_dsn) as desk, Desk(fresh_dsn) as other, paused_after_its_snapshot(fresh_dsn, desk) as paused:
        worker = desk.worker()
        desk.enqueue({})
        claim = desk.claim(worker)
        desk.condemn(worker)
        desk.sql("select pg_advisory_lock(7)")
        returning = meanwhile(paused.return_jobs)
        await waits_for_a_lock(other)
        change(other, claim)
        desk.sql("select pg_advisory_unlock(7)")

        # The row that changed is seen, and not returned: there is more to do, and the worker is still known.
        assert returning()[:3] == (0, 0, True)
        assert desk.sql("select id::text from tenure.workers") == [(worker,)]
        assert desk.return_jobs()[:3] == (1, 0, False)
        assert desk.sql(ORPHANS) == [(0,)]
        assert desk.sql("select count(*) from tenure.workers") == [(0,)]


async def test_a_heartbeat_that_meets_a_changed_row_is_not_reported_as_written(fresh_dsn):
    with Desk(fresh_dsn) as desk, Desk(fresh_dsn) as other, paused_after_its_snapshot(fresh_dsn, desk, "jobs") as paused:
        worker = desk.worker()
        desk.enqueue({})
        claim = desk.claim(worker, leases={"work": 60})
        note = json.dumps([{"id": claim.ids[0], "claim_id": claim.id, "lease": 3600, "percent": 5}])
        desk.sql("select pg_advisory_lock(7)")
        heard = meanwhile(lambda: paused.run(jobs.note(note, 200)))
        await waits_for_a_lock(other)
        new_limit(other, claim)
        desk.sql("select pg_advisory_unlock(7)")

        extended = "select lease_until > now() + interval '30 minutes' from tenure.jobs"
        assert (heard(), desk.sql(extended)) == ([], [(False,)])
        assert (desk.run(jobs.note(note, 200)), desk.sql(extended)) == ([(claim.ids[0], False)], [(True,)])


def test_jobs_held_by_a_worker_without_a_row_are_requeued(desk):
    lost, living = desk.worker(), desk.worker()
    [first, second] = desk.enqueue({}, {})
    desk.claim(lost, limit=1)
    desk.claim(living, limit=1)
    desk.sql("delete from tenure.workers where id = %s", lost)
    term = desk.term("reaper")

    assert desk.run(workers.condemn_unknown(term)) == [(True, [lost])]
    assert desk.run(workers.condemn_unknown(term)) == [(True, [])]
    assert desk.return_jobs()[:2] == (1, 0)

    assert (desk.job(first)["state"], desk.job(first)["crashes"]) == ("pending", 1)
    assert desk.job(second)["state"] == "running"
    assert desk.sql("select id::text from tenure.workers") == [(living,)]


async def test_a_trigger_that_suppresses_every_return_does_not_make_the_reaper_turn_for_ever(place, desk):
    worker = desk.worker()
    desk.enqueue({})
    desk.claim(worker)
    desk.condemn(worker)
    desk.sql("create function public.keep() returns trigger language plpgsql as $$ begin return null; end $$")
    desk.sql("create trigger keep before update on tenure.jobs for each row execute function public.keep()")
    try:
        async with Link(place, "reaper") as link, asyncio.timeout(10):
            assert await requeue_jobs(link, None) == 0
    finally:
        desk.sql("drop trigger keep on tenure.jobs")
        desk.sql("drop function public.keep()")
