"""What a claim under limits takes, and what it leaves."""

from __future__ import annotations

import pytest

from tenure.store import claims, jobs, limits, workers
from tests.store.database import everything
from tests.store.forged_jobs import forge_claim


def test_no_more_are_taken_than_may_run_at_a_time(database):
    database.limit("kind:work", concurrency=3)
    worker = database.worker()
    ids = database.many(10)
    taken = database.take(worker)
    assert sorted(taken.ids) == sorted(ids[:3])
    assert database.take(database.worker()).ids == []
    database.run(jobs.finish(taken.finished(taken.ids[0])))
    assert database.take(worker).ids == [ids[3]]


def test_the_ordinary_claim_does_not_see_them(database):
    database.limit("kind:work", concurrency=3)
    worker = database.worker()
    database.many(3)
    database.sql("update tenure.limit_changes set version = 0")
    assert database.claim(worker).ids == []


def test_a_worker_that_knows_older_limits_claims_nothing(database):
    worker = database.worker()
    [job_id] = database.enqueue({})
    database.limit("kind:other", concurrency=3)
    claim = database.claim(worker)
    assert (claim.ids, claim.reply.limits, claim.reply.holds) == ([], 1, True)
    database.sql("update tenure.limit_changes set version = 0")
    assert database.claim(worker).ids == [job_id]


def test_a_limit_per_key_counts_each_key_separately(database):
    database.limit("kind:work", concurrency_per_key=2, key="tenant_id")
    for tenant in "abc":
        database.of(tenant, 5)
    taken = database.take(database.worker(), limit=100)
    assert sorted(taken.tenants) == list("aabbcc")
    assert database.take(database.worker()).ids == []


def test_in_all_and_of_each_key(database):
    database.limit("kind:work", concurrency=4, concurrency_per_key=2, key="tenant_id")
    for tenant in "abc":
        database.of(tenant, 5)
    first = database.take(database.worker(), limit=3)
    second = database.take(database.worker(), limit=3)
    assert (len(first.ids), len(second.ids)) == (3, 1)
    assert max(map((first.tenants + second.tenants).count, "abc")) <= 2


def test_a_kind_and_its_queue_bound_it_together(database):
    database.limit("kind:work", concurrency=5)
    database.limit("queue:default", concurrency_per_key=2, concurrency=4, key="tenant_id")
    database.of("a", 5)
    database.of("b", 5)
    database.of("a", 5, kind="other")
    database.of("a", 5, queue="mail")
    taken = database.take(database.worker(), limit=100, queues=("default", "mail"))
    while more := database.take(database.worker(), limit=100, queues=("default", "mail")).jobs:
        taken.jobs += more
    by_kind = [job["kind"] for job in taken.jobs]
    here = [tenant for job, tenant in zip(taken.jobs, taken.tenants, strict=True) if job["queue"] == "default"]
    assert by_kind.count("work") <= 5
    assert (len(here), here.count("a"), here.count("b")) == (4, 2, 2)
    assert len(taken.ids) >= 5  # those of the other queue are not held up by this one


@pytest.mark.parametrize("room", ["kind", "key of a kind", "queue", "key of a queue"])
def test_sets_of_jobs_that_share_one_room_do_not_each_use_all_of_it(database, room):
    """Each of the two sets has as many jobs as there is room for, and no other room is too small."""
    match room:
        case "kind":
            database.limit("kind:work", concurrency=3, fair=True, key="tenant_id")
            database.of("a", 3)
            database.of("b", 3)
        case "key of a kind":
            database.limit("kind:work", concurrency_per_key=3, key="tenant_id")
            database.of("a", 3)
            database.of("a", 3, queue="mail")
        case "queue":
            database.limit("queue:default", concurrency=3)
            database.many(3)
            database.many(3, kind="other")
        case "key of a queue":
            database.limit("queue:default", concurrency_per_key=3, key="tenant_id")
            database.of("a", 3)
            database.of("a", 3, kind="other")
    assert len(database.take(database.worker(), limit=20, queues=("default", "mail")).ids) == 3


@pytest.mark.parametrize("end", ["finished", "moved", "canceled", "deleted", "returned", "disowned"])
def test_a_job_counts_for_as_long_as_it_is_held_and_no_longer(database, end):
    database.limit("kind:work", concurrency=1)
    worker, next_worker = database.worker(), database.worker()
    first, second = database.many(2)
    taken = database.take(worker)
    assert taken.ids == [first]
    match end:
        case "finished":
            database.run(jobs.finish(taken.finished()))
        case "moved":
            database.run(jobs.move(taken.outcomes(state="retry", delay=60)))
        case "canceled":
            database.run(jobs.cancel([first], error="canceled"))
        case "deleted":
            database.run(jobs.delete([first], force=True))
        case "returned":
            database.condemn(worker)
            database.run(jobs.return_jobs(worker))
        case "disowned":
            database.run(claims.disown(taken.held, ["default"]))
    assert database.take(next_worker).ids == [first if end in ("returned", "disowned") else second]
    assert database.take(next_worker).ids == []


def test_a_job_of_a_dead_worker_counts_until_it_is_requeued(database):
    """Its process may still be running it, for all that anybody knows."""
    database.limit("kind:work", concurrency=1)
    worker = database.worker()
    database.many(2)
    database.take(worker)
    database.condemn(worker)
    assert database.take(database.worker()).ids == []


@pytest.mark.parametrize("reason", ["condemned", "expired", "unknown"])
def test_a_worker_without_a_lease_claims_nothing(database, reason):
    database.limit("kind:work", concurrency=3)
    worker = database.worker(ttl=0.0 if reason == "expired" else 600.0)
    if reason == "condemned":
        database.condemn(worker)
    if reason == "unknown":
        database.sql("delete from tenure.workers")
    database.enqueue({})
    taken = database.take(worker)
    assert (taken.ids, taken.told["holds"]) == ([], False)


def test_a_paused_queue_gives_nothing(database):
    database.limit("kind:work", concurrency=3)
    worker = database.worker()
    database.enqueue({})
    database.sql("insert into tenure.queues (name, paused_at) values ('default', now())")
    assert database.take(worker).ids == []


def test_within_a_limit_group_the_highest_priority_comes_first_then_the_oldest(database):
    database.limit("queue:default", concurrency=100)
    worker = database.worker()
    ids = database.enqueue(
        *({"priority": p, "kind": k} for p, k in [(0, "work"), (100, "other"), (50, "work"), (50, "other"), (75, "work")])
    )
    order = [database.take(worker, limit=1).ids[0] for _ in ids]
    assert order == [ids[place] for place in (1, 4, 2, 3, 0)]


def test_across_limit_groups_the_highest_priority_comes_first(database):
    database.limit("kind:work", concurrency_per_key=9, key="tenant_id")
    worker = database.worker()
    database.of("a", 5)
    [urgent] = database.of("z", priority=100)
    assert database.take(worker, limit=1).ids == [urgent]


def test_urgent_jobs_of_one_group_come_before_those_of_many_other_groups_over_several_claims(database):
    """A claim reads each group only a little further than its share: what it has not read yet must not be overtaken."""
    database.limit("kind:work", concurrency_per_key=100, key="tenant_id")
    for tenant in range(20):
        database.of(f"t{tenant}", 5)
    database.of("urgent", 60, priority=75)
    worker, taken = database.worker(), []
    while len(taken) < 160:
        found = database.take(worker, limit=40)
        assert found.jobs
        taken += [(job["priority"], job["position"]) for job in found.jobs]
    assert [priority for priority, _ in taken] == [75] * 60 + [50] * 100
    assert [position for priority, position in taken if priority == 75] == sorted(p for priority, p in taken if priority == 75)


def test_a_claim_that_stops_short_of_its_limit_says_that_there_is_more(database):
    database.limit("kind:work", concurrency_per_key=100, key="tenant_id")
    for tenant in range(20):
        database.of(f"t{tenant}", 1)
    database.of("busy", 60)
    taken = database.take(database.worker(), limit=40)
    assert len(taken.jobs) < 40
    assert taken.told["more"] is True


def test_jobs_that_are_not_for_this_worker_do_not_hide_others(database):
    database.limit("queue:default", concurrency=100)
    worker = database.worker()
    database.many(300, kind="unknown", priority=100)
    database.many(300, capability="gpu", priority=100)
    [mine] = database.enqueue({})
    assert database.take(worker).ids == [mine]
    assert len(database.take(worker, capabilities=["gpu"]).ids) == 10


def test_suspects_are_distinguished_from_healthy_jobs(database):
    database.limit("kind:work", concurrency=10)
    worker = database.worker()
    healthy, suspect = database.many(2)
    database.sql("update tenure.jobs set crashes = 2 where id = %s", suspect)
    assert database.take(worker, which="suspects").ids == [suspect]
    assert database.take(worker, which="healthy").ids == [healthy]


def test_the_supervisor_is_notified_of_limited_suspects(database):
    database.limit("kind:work", concurrency=10)
    database.enqueue({})
    assert database.run(workers.renew([], ["default"], 10.0))[0][1] is False
    database.sql("update tenure.jobs set crashes = 2")
    assert database.run(workers.renew([], ["default"], 10.0))[0][1] is True


def test_a_locked_job_is_left_alone(database, other):
    database.limit("kind:work", concurrency=2)
    worker = database.worker()
    first, second, third = database.many(3)
    with other.connection.transaction():
        other.sql("select 1 from tenure.jobs where id = %s for update", first)
        taken = database.take(worker)
        assert (taken.ids, taken.told["chosen"]) == ([second, third], 2)
    assert database.take(worker).ids == []
    assert database.job(first)["state"] == "pending"
    database.run(jobs.finish(taken.finished(second)))
    assert database.take(worker).ids == [first]


def test_locked_jobs_at_the_head_of_a_group_do_not_stop_the_group(database, other):
    """A transaction of a user that cancels jobs and stays open: the jobs behind them have room under the limit."""
    database.limit("kind:work", concurrency=3)
    first, second, third, *rest = database.many(8)
    worker = database.worker()
    with other.connection.transaction():
        other.sql("select from tenure.jobs where id in (%s, %s, %s) for update", first, second, third)
        assert database.take(worker).ids == rest[:3]


def test_no_claim_waits_for_the_lock_of_a_limit(database, other):
    database.limit("kind:work", concurrency=5)
    worker = database.worker()
    database.many(2)
    database.sql("set lock_timeout = '100ms'")
    with other.connection.transaction():
        assert other.lock() == ["kind:work"]
        assert database.take(worker).ids == []
    assert len(database.take(worker).ids) == 2


def test_a_limit_that_another_holds_does_not_hold_up_the_others(database, other):
    database.limit("kind:work", concurrency=5)
    database.limit("kind:other", concurrency=5)
    database.many(1)
    [free] = database.many(1, kind="other")
    with other.connection.transaction():
        assert other.lock(kinds=["work"]) == ["kind:work"]
        assert database.take(database.worker()).ids == [free]


def test_a_claim_sees_what_was_claimed_while_it_waited_for_nothing(database, other):
    """The holder before commits between our lock and our count: the count must see it, or the limit is exceeded."""
    database.limit("kind:work", concurrency=1)
    first, _ = database.many(2)
    mine, theirs = database.worker(), other.worker()
    with database.connection.transaction():
        assert database.lock() == ["kind:work"]
        # A session that does not hold the lock (a job that is adopted while it runs) commits just now.
        claim_id = forge_claim(other.sql, theirs, [first])
        other.sql(
            "update tenure.jobs set state = 'running', claim_id = %s, held_group = limit_group where id = %s", claim_id, first
        )
        assert database.take_locked(mine, ["kind:work"]).ids == []


def test_a_full_limit_is_not_even_locked(database):
    database.limit("kind:work", concurrency=1)
    database.many(2)
    database.take(database.worker())
    assert database.run(limits.lock(["kind:work"], ["default"])) == []


def test_a_limit_of_none_stops_it(database):
    database.limit("kind:work", concurrency=0)
    database.many(2)
    assert database.take(database.worker()).ids == []


def test_jobs_under_a_limit_that_is_not_locked_stay_where_they_are(database):
    """A limit that came up after the worker learnt them."""
    database.limit("kind:work", concurrency=5)
    database.many(2)
    database.limit("queue:default", concurrency=1)
    database.run(limits.regroup(["default"], limit=10))
    assert database.take_locked(database.worker(), ["kind:work"]).ids == []


def test_what_a_claim_writes(database):
    database.limit("kind:work", concurrency=5)
    worker = database.worker()
    [job_id] = database.enqueue({"input": {"n": 1}})
    taken = database.take(worker)
    assert database.sql("select state, claim_id::text, held_group, fence, attempt from tenure.jobs") == [
        ("running", taken.claim_id, "kind:work", 1, 1)
    ]
    assert database.sql("select id::text, worker_id::text, job_ids::text[] from tenure.claims") == [
        (taken.claim_id, worker, [job_id])
    ]
    assert (taken.jobs[0]["input"], taken.jobs[0]["limit_group"]) == ('{"n": 1}', "kind:work")


def test_everything_is_where_it_was_for_those_without_limits(database):
    worker = database.worker()
    ids = database.many(3)
    assert sorted(database.claim(worker, lanes=[everything()]).ids) == sorted(ids)
    assert database.sql("select count(*) from tenure.starts") == [(0,)]
