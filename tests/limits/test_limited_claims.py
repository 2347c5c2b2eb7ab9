"""What a claim under limits takes, and what it leaves."""

from __future__ import annotations

import pytest

from tenure.store import jobs, limits, workers
from tests.store.desk import everything


def test_no_more_are_taken_than_may_run_at_a_time(desk):
    desk.limit("kind:work", concurrency=3)
    worker = desk.worker()
    ids = desk.many(10)
    taken = desk.take(worker)
    assert sorted(taken.ids) == sorted(ids[:3])
    assert desk.take(desk.worker()).ids == []
    desk.run(jobs.finish(taken.outcomes(taken.ids[0])))
    assert desk.take(worker).ids == [ids[3]]


def test_the_ordinary_claim_does_not_see_them(desk):
    desk.limit("kind:work", concurrency=3)
    worker = desk.worker()
    desk.many(3)
    desk.sql("update tenure.limit_changes set version = 0")
    assert desk.claim(worker).ids == []


def test_a_worker_that_knows_older_limits_claims_nothing(desk):
    worker = desk.worker()
    [job_id] = desk.enqueue({})
    desk.limit("kind:other", concurrency=3)
    claim = desk.claim(worker)
    assert (claim.ids, claim.signals.limits, claim.signals.holds) == ([], 1, True)
    desk.sql("update tenure.limit_changes set version = 0")
    assert desk.claim(worker).ids == [job_id]


def test_so_many_of_each_key(desk):
    desk.limit("kind:work", concurrency_per_key=2, key="tenant_id")
    for tenant in "abc":
        desk.of(tenant, 5)
    taken = desk.take(desk.worker(), limit=100)
    assert sorted(taken.tenants) == list("aabbcc")
    assert desk.take(desk.worker()).ids == []


def test_in_all_and_of_each_key(desk):
    desk.limit("kind:work", concurrency=4, concurrency_per_key=2, key="tenant_id")
    for tenant in "abc":
        desk.of(tenant, 5)
    first = desk.take(desk.worker(), limit=3)
    second = desk.take(desk.worker(), limit=3)
    assert (len(first.ids), len(second.ids)) == (3, 1)
    assert max(map((first.tenants + second.tenants).count, "abc")) <= 2


def test_a_kind_and_its_queue_bound_it_together(desk):
    desk.limit("kind:work", concurrency=5)
    desk.limit("queue:default", concurrency_per_key=2, concurrency=4, key="tenant_id")
    desk.of("a", 5)
    desk.of("b", 5)
    desk.of("a", 5, kind="other")
    desk.of("a", 5, queue="mail")
    taken = desk.take(desk.worker(), limit=100, queues=("default", "mail"))
    while more := desk.take(desk.worker(), limit=100, queues=("default", "mail")).jobs:
        taken.jobs += more
    by_kind = [job["kind"] for job in taken.jobs]
    here = [tenant for job, tenant in zip(taken.jobs, taken.tenants, strict=True) if job["queue"] == "default"]
    assert by_kind.count("work") <= 5
    assert (len(here), here.count("a"), here.count("b")) == (4, 2, 2)
    assert len(taken.ids) >= 5  # those of the other queue are not held up by this one


@pytest.mark.parametrize("end", ["finished", "moved", "canceled", "deleted", "returned", "disowned"])
def test_a_job_counts_for_as_long_as_it_is_held_and_no_longer(desk, end):
    desk.limit("kind:work", concurrency=1)
    worker, next_worker = desk.worker(), desk.worker()
    first, second = desk.many(2)
    taken = desk.take(worker)
    assert taken.ids == [first]
    match end:
        case "finished":
            desk.run(jobs.finish(taken.outcomes()))
        case "moved":
            desk.run(jobs.move(taken.outcomes(state="retry", delay=60)))
        case "canceled":
            desk.run(jobs.cancel([first], error="canceled"))
        case "deleted":
            desk.run(jobs.delete([first], force=True))
        case "returned":
            desk.condemn(worker)
            desk.run(jobs.return_jobs(worker))
        case "disowned":
            desk.run(jobs.disown(worker, taken.held, ["default"]))
    assert desk.take(next_worker).ids == [first if end in ("returned", "disowned") else second]
    assert desk.take(next_worker).ids == []


def test_a_job_of_a_dead_worker_counts_until_it_is_given_back(desk):
    """Its process may still be running it, for all that anybody knows."""
    desk.limit("kind:work", concurrency=1)
    worker = desk.worker()
    desk.many(2)
    desk.take(worker)
    desk.condemn(worker)
    assert desk.take(desk.worker()).ids == []


@pytest.mark.parametrize("reason", ["condemned", "expired", "unknown"])
def test_a_worker_without_a_lease_claims_nothing(desk, reason):
    desk.limit("kind:work", concurrency=3)
    worker = desk.worker(ttl=0.0 if reason == "expired" else 600.0)
    if reason == "condemned":
        desk.condemn(worker)
    if reason == "unknown":
        desk.sql("delete from tenure.workers")
    desk.enqueue({})
    taken = desk.take(worker)
    assert (taken.ids, taken.told["holds"]) == ([], False)


def test_a_paused_queue_gives_nothing(desk):
    desk.limit("kind:work", concurrency=3)
    worker = desk.worker()
    desk.enqueue({})
    desk.sql("insert into tenure.queues (name, paused_at) values ('default', now())")
    assert desk.take(worker).ids == []


def test_within_a_limit_group_the_highest_priority_comes_first_then_the_oldest(desk):
    desk.limit("queue:default", concurrency=100)
    worker = desk.worker()
    ids = desk.enqueue(
        *({"priority": p, "kind": k} for p, k in [(0, "work"), (100, "other"), (50, "work"), (50, "other"), (75, "work")])
    )
    order = [desk.take(worker, limit=1).ids[0] for _ in ids]
    assert order == [ids[place] for place in (1, 4, 2, 3, 0)]


def test_across_limit_groups_the_highest_priority_comes_first(desk):
    desk.limit("kind:work", concurrency_per_key=9, key="tenant_id")
    worker = desk.worker()
    desk.of("a", 5)
    [urgent] = desk.of("z", priority=100)
    assert desk.take(worker, limit=1).ids == [urgent]


def test_jobs_that_are_not_for_this_worker_hide_nobody(desk):
    desk.limit("queue:default", concurrency=100)
    worker = desk.worker()
    desk.many(300, kind="unknown", priority=100)
    desk.many(300, capability="gpu", priority=100)
    [mine] = desk.enqueue({})
    assert desk.take(worker).ids == [mine]
    assert len(desk.take(worker, capabilities=["gpu"]).ids) == 10


def test_suspects_are_told_from_the_healthy(desk):
    desk.limit("kind:work", concurrency=10)
    worker = desk.worker()
    healthy, suspect = desk.many(2)
    desk.sql("update tenure.jobs set crashes = 2 where id = %s", suspect)
    assert desk.take(worker, which="suspects").ids == [suspect]
    assert desk.take(worker, which="healthy").ids == [healthy]


def test_the_supervisor_hears_of_limited_suspects(desk):
    desk.limit("kind:work", concurrency=10)
    desk.enqueue({})
    assert desk.run(workers.renew([], ["default"], 10.0))[0][1] is False
    desk.sql("update tenure.jobs set crashes = 2")
    assert desk.run(workers.renew([], ["default"], 10.0))[0][1] is True


def test_a_locked_job_is_left_alone(desk, other):
    desk.limit("kind:work", concurrency=2)
    worker = desk.worker()
    first, second, third = desk.many(3)
    with other.connection.transaction():
        other.sql("select 1 from tenure.jobs where id = %s for update", first)
        taken = desk.take(worker)
        assert (taken.ids, taken.told["chosen"]) == ([second], 2)
    assert desk.take(worker).ids == [first]
    assert desk.job(third)["state"] == "pending"


def test_nobody_waits_for_the_lock_of_a_limit(desk, other):
    desk.limit("kind:work", concurrency=5)
    worker = desk.worker()
    desk.many(2)
    desk.sql("set lock_timeout = '100ms'")
    with other.connection.transaction():
        assert other.lock() == ["kind:work"]
        assert desk.take(worker).ids == []
    assert len(desk.take(worker).ids) == 2


def test_a_limit_that_another_holds_does_not_hold_up_the_others(desk, other):
    desk.limit("kind:work", concurrency=5)
    desk.limit("kind:other", concurrency=5)
    desk.many(1)
    [free] = desk.many(1, kind="other")
    with other.connection.transaction():
        assert other.lock(kinds=["work"]) == ["kind:work"]
        assert desk.take(desk.worker()).ids == [free]


def test_a_claim_sees_what_was_claimed_while_it_waited_for_nothing(desk, other):
    """The holder before commits between our lock and our count: the count must see it, or the limit is exceeded."""
    desk.limit("kind:work", concurrency=1)
    first, _ = desk.many(2)
    mine, theirs = desk.worker(), other.worker()
    with desk.connection.transaction():
        assert desk.lock() == ["kind:work"]
        # Somebody whose claim does not hold the lock (a job that is adopted while it runs) commits just now.
        other.sql(
            "update tenure.jobs set state = 'running', claim_id = gen_random_uuid(), worker_id = %s where id = %s", theirs, first
        )
        assert desk.take_locked(mine, ["kind:work"]).ids == []


def test_a_full_limit_is_not_even_locked(desk):
    desk.limit("kind:work", concurrency=1)
    desk.many(2)
    desk.take(desk.worker())
    assert desk.run(limits.lock(["kind:work"], ["default"])) == []


def test_a_limit_of_none_stops_it(desk):
    desk.limit("kind:work", concurrency=0)
    desk.many(2)
    assert desk.take(desk.worker()).ids == []


def test_jobs_under_a_limit_that_is_not_locked_stay_where_they_are(desk):
    """A limit that came up after the worker learnt them."""
    desk.limit("kind:work", concurrency=5)
    desk.many(2)
    desk.limit("queue:default", concurrency=1)
    desk.run(limits.regroup(["default"], limit=10))
    assert desk.take_locked(desk.worker(), ["kind:work"]).ids == []


def test_what_a_claim_writes(desk):
    desk.limit("kind:work", concurrency=5)
    worker = desk.worker()
    desk.enqueue({"input": {"n": 1}})
    taken = desk.take(worker)
    assert desk.sql("select state, claim_id::text, worker_id::text, fence, attempt from tenure.jobs") == [
        ("running", taken.claim_id, worker, 1, 1)
    ]
    assert (taken.jobs[0]["input"], taken.jobs[0]["limit_group"]) == ('{"n": 1}', "kind:work")


def test_everything_is_where_it_was_for_those_without_limits(desk):
    worker = desk.worker()
    ids = desk.many(3)
    assert sorted(desk.claim(worker, lanes=[everything()]).ids) == sorted(ids)
    assert desk.sql("select count(*) from tenure.starts") == [(0,)]
