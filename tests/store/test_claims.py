"""Who gets which job, and in what order."""

from __future__ import annotations

from itertools import pairwise
from threading import Barrier, Thread
from uuid import uuid4

import psycopg
import pytest

from tenure.store import workers
from tests.store.database import Database, everything
from tests.store.forged_jobs import change_state
from tests.store.locks import waits_for_a_lock

PLANNERS = [
    {},
    {"enable_nestloop": "off"},
    {"enable_hashjoin": "off", "enable_mergejoin": "off"},
    {"enable_nestloop": "off", "enable_hashjoin": "off"},
    {"enable_nestloop": "off", "enable_mergejoin": "off"},
    {"enable_indexscan": "off"},
    {"enable_indexscan": "off", "enable_bitmapscan": "off", "enable_indexonlyscan": "off"},
    {"enable_seqscan": "off"},
    {"enable_seqscan": "off", "enable_indexscan": "off"},
    {"enable_tidscan": "off"},
    {"enable_tidscan": "off", "enable_seqscan": "off"},
    {"enable_material": "off", "enable_nestloop": "off"},
    {"enable_sort": "off"},
    {"enable_sort": "off", "enable_indexscan": "off"},
    {"enable_incremental_sort": "off", "enable_hashagg": "off", "enable_seqscan": "off"},
    {"enable_tidscan": "off", "enable_hashjoin": "off", "enable_indexscan": "off", "enable_material": "off"},
]


@pytest.mark.parametrize("plan_cache_mode", ["force_generic_plan", "force_custom_plan"])
@pytest.mark.parametrize("planner", PLANNERS, ids=lambda settings: " ".join(settings).replace("enable_", "no ") or "as it likes")
def test_a_claim_takes_its_limit_and_no_more_under_any_plan(dsn, planner, plan_cache_mode):
    with Database(dsn, plan_cache_mode=plan_cache_mode, **planner) as database:
        database.sql("alter table tenure.jobs set (autovacuum_enabled = false)")
        [first] = database.enqueue({"priority": 0})
        database.sql("analyze tenure.jobs")
        ids = database.enqueue(*({"priority": priority} for _ in range(20) for priority in (25, 75, 50)))
        worker = database.worker()
        lanes = [
            {"queue": "default", "high": 100, "low": 51, "start": 0},
            {"queue": "default", "high": 50, "low": 50, "start": 0},
            {"queue": "default", "high": 49, "low": 0, "start": 0},
        ]
        claim = database.claim(worker, limit=7, lanes=lanes)
        assert sorted(claim.ids) == sorted(ids[1::3][:7])
        rest = database.claim(worker, limit=40, lanes=lanes)
        assert sorted(rest.ids) == sorted(ids[1::3][7:] + ids[2::3] + ids[0::3][:7])
        assert database.sql("select count(*) from tenure.jobs where state = 'running'") == [(47,)]
        assert database.job(first)["state"] == "pending"


def test_higher_priorities_come_first_and_equals_in_the_order_of_their_arrival(database):
    worker = database.worker()
    ids = database.enqueue(*({"priority": p} for p in (0, 100, 50, 50, 75, 100)))
    order = [database.claim(worker, limit=1).ids[0] for _ in ids]
    assert order == [ids[place] for place in (1, 5, 4, 2, 3, 0)]


def test_a_lane_begins_at_its_start(database):
    worker = database.worker()
    ids = database.enqueue({}, {}, {})
    start = database.sql("select position from tenure.jobs where id = %s", ids[1])[0][0]
    claim = database.claim(worker, lanes=[{"queue": "default", "high": 50, "low": 50, "start": start}])
    assert sorted(claim.ids) == sorted(ids[1:])


def test_what_a_claim_writes(database):
    worker = database.worker()
    [job_id] = database.enqueue({"input": {"n": 1}})
    claim = database.claim(worker, leases={"work": 30})
    assert database.sql(
        "select state, claim_id::text, held_group, fence, attempt, lease_until > clock_timestamp() from tenure.jobs"
    ) == [("running", claim.id, None, 1, 1, True)]
    assert database.sql(
        "select id::text, worker_id::text, job_ids::text[], at between now() - interval '1 minute' and now() from tenure.claims"
    ) == [(claim.id, worker, [job_id], True)]
    assert (str(database.job(job_id)["worker_id"]), str(database.job(job_id)["claim_id"])) == (worker, claim.id)
    assert claim.jobs[0]["input"] == '{"n": 1}'
    assert claim.ids == [job_id]


def test_a_kind_without_a_lease_of_its_own_has_none(database):
    worker = database.worker()
    database.enqueue({}, {"kind": "leased"})
    database.claim(worker, kinds=["work", "leased"], leases={"leased": 30})
    assert database.sql("select kind, lease_until is null from tenure.jobs order by kind") == [("leased", False), ("work", True)]


def test_locked_jobs_are_skipped_and_the_limit_is_filled_from_the_others(database, other):
    worker = database.worker()
    ids = database.enqueue({}, {}, {}, {})
    with other.connection.transaction():
        other.sql("select 1 from tenure.jobs where id = any (%s) for no key update", ids[:2])
        assert sorted(database.claim(worker, limit=2).ids) == sorted(ids[2:])


def test_a_key_share_lock_does_not_hide_a_job(database, other):
    """A row elsewhere that refers to the job takes such a lock."""
    worker = database.worker()
    ids = database.enqueue({}, {}, {})
    with other.connection.transaction():
        other.sql("select 1 from tenure.jobs for key share")
        assert sorted(database.claim(worker).ids) == sorted(ids)


def test_claimers_at_the_same_time_never_share_a_job(dsn, database):
    ids = database.enqueue(*({"priority": n % 3} for n in range(2000)))
    claimed: list[str] = []
    start = Barrier(8)

    def take_all() -> None:
        with Database(dsn) as mine:
            worker = mine.worker()
            start.wait()
            while found := mine.claim(worker, limit=17).ids:
                claimed.extend(found)

    threads = [Thread(target=take_all) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(claimed) == len(set(claimed))
    # A claimer that found only locked rows may leave, but no claimer leaves while an unlocked job is pending.
    assert sorted(claimed) == sorted(ids)
    assert database.sql("select min(fence), max(fence), min(attempt), max(attempt) from tenure.jobs") == [(1, 1, 1, 1)]


async def test_a_job_that_changed_while_the_claim_waited_is_reported_and_taken_by_the_next(dsn, database, other):
    """The claim's snapshot is older than the change: the row is locked at its new place but not claimed. The claim says
    so, and the cursors go back."""
    worker = database.worker()
    ids = database.enqueue({}, {}, {})
    claims = []
    with Database(dsn) as third, other.connection.transaction():
        other.sql("select 1 from tenure.workers for update")
        thread = Thread(target=lambda: claims.append(third.claim(worker)))
        thread.start()
        await waits_for_a_lock(database)
        database.sql("update tenure.jobs set error = 'touched' where id = %s", ids[1])
        other.connection.execute("rollback")
        thread.join()
    [claim] = claims
    assert sorted(claim.ids) == sorted([ids[0], ids[2]])
    assert claim.reply.picked == 3
    assert database.claim(worker).ids == [ids[1]]


def test_a_paused_queue_gives_nothing_and_the_claim_says_so(database):
    worker = database.worker()
    database.enqueue({}, {"queue": "mail"})
    database.sql("insert into tenure.queues (name, paused_at) values ('default', now())")
    claim = database.claim(worker, queues=["default", "mail"])
    assert [job["queue"] for job in claim.jobs] == ["mail"]
    assert claim.reply.paused == ["default"]
    database.sql("update tenure.queues set paused_at = null")
    assert len(database.claim(worker).ids) == 1


def test_a_draining_worker_claims_nothing_and_passes_over_nothing(database):
    supervisor = str(uuid4())
    worker, sibling, other = database.worker(supervisor=supervisor), database.worker(supervisor=supervisor), database.worker()
    database.enqueue({}, {"queue": "mail"})
    assert set(database.run(workers.drain([worker], draining=True))) == {(worker,), (sibling,)}
    for drained in (worker, sibling, database.worker(supervisor=supervisor)):
        claim = database.claim(drained, queues=["default", "mail"])
        assert (claim.ids, claim.reply.holds, sorted(claim.reply.paused)) == ([], True, ["default", "mail"])
    assert len(database.claim(other).ids) == 1
    database.run(workers.drain([sibling], draining=False))
    claim = database.claim(worker, queues=["default", "mail"])
    assert ([job["queue"] for job in claim.jobs], claim.reply.paused) == (["mail"], [])


def test_a_drain_waits_for_a_claim_under_way(database, other):
    worker = database.worker()
    database.enqueue({})
    database.sql("set lock_timeout = '50ms'")
    with other.connection.transaction():
        assert len(other.claim(worker).ids) == 1
        with pytest.raises(psycopg.errors.LockNotAvailable):
            database.run(workers.drain([worker], draining=True))
    assert database.run(workers.drain([worker], draining=True)) == [(worker,)]


def test_only_known_kinds_and_capabilities_are_taken(database):
    worker = database.worker()
    plain, gpu, _other = database.enqueue({}, {"capability": "gpu"}, {"kind": "strange"})
    assert database.claim(worker).ids == [plain]
    assert database.claim(worker, capabilities=["smtp"]).ids == []
    assert database.claim(worker, capabilities=["smtp", "gpu"]).ids == [gpu]
    assert database.sql("select kind from tenure.jobs where state = 'pending'") == [("strange",)]


def test_suspects_are_distinguished_from_healthy_jobs(database):
    worker = database.worker()
    ids = database.enqueue({}, {}, {})
    for crashes, job_id in enumerate(ids):
        database.sql("update tenure.jobs set crashes = %s where id = %s", crashes, job_id)
    assert database.claim(worker, which="suspects").ids == [ids[2]]
    assert sorted(database.claim(worker, which="healthy").ids) == sorted(ids[:2])
    change_state(database.sql, "pending")
    assert sorted(database.claim(worker, which="all").ids) == sorted(ids)


@pytest.mark.parametrize("reason", ["condemned", "expired", "unknown"])
def test_a_worker_without_a_lease_claims_nothing(database, reason):
    worker = database.worker(ttl=0.0 if reason == "expired" else 600.0)
    if reason == "condemned":
        database.condemn(worker)
    if reason == "unknown":
        database.sql("delete from tenure.workers")
    database.enqueue({})
    claim = database.claim(worker)
    assert (claim.ids, claim.reply.holds) == ([], False)
    assert database.sql("select state, fence from tenure.jobs") == [("pending", 0)]


def test_the_fence_and_the_start_of_every_lane_are_returned_without_jobs_as_well(database):
    claim = database.claim(database.worker(), lanes=[everything("nothing here")])
    assert claim.reply.holds
    assert claim.reply.xmin <= claim.reply.xid


def test_positions_grow_in_the_order_of_arrival(database):
    database.enqueue({}, {}, {})
    database.enqueue({})
    positions = [row[0] for row in database.sql("select position from tenure.jobs order by id")]
    assert all(before < after for before, after in pairwise(sorted(positions)))
    assert len(set(positions)) == 4
