"""Limit groups take turns: none starves, however many jobs others have."""

from __future__ import annotations

from collections import Counter


def drained(database, worker, count, *, limit=1, **more):
    """The tenants in the order in which they were served, by a worker that remembers where it was."""
    served, after = [], ""
    for _ in range(count):
        taken = database.take(worker, limit=limit, after=after, **more)
        served += taken.tenants
        after = (taken.told.get("cursors") or {}).get("default", after)
    return served


def test_one_job_beside_twenty_thousand_is_among_the_first(database):
    database.limit("kind:work", fair=True, key="tenant_id")
    worker = database.worker()
    database.of("a", 20_000)
    database.of("b")
    assert "b" in drained(database, worker, 2)
    database.of("b")
    assert "b" in database.take(worker, limit=10).tenants


def test_turns_come_before_priorities_where_the_limit_is_fair(database):
    database.limit("kind:work", fair=True, key="tenant_id")
    worker = database.worker()
    database.of("a", 20, priority=100)
    database.of("b", 3, priority=0)
    assert Counter(drained(database, worker, 6)) == {"a": 3, "b": 3}


def test_all_get_the_same_share(database):
    database.limit("kind:work", fair=True, key="tenant_id")
    worker = database.worker()
    for tenant, count in (("a", 100), ("b", 50), ("c", 50)):
        database.of(tenant, count)
    assert Counter(drained(database, worker, 10, limit=3)) == {"a": 10, "b": 10, "c": 10}


def test_more_limit_groups_than_one_claim_reaches_are_all_served(database):
    database.limit("kind:work", concurrency_per_key=1, key="tenant_id")
    worker = database.worker()
    tenants = [f"{number:03}" for number in range(50)]
    for tenant in tenants:
        database.of(tenant, 2)
    assert sorted(drained(database, worker, 60, steps=7)) == tenants


def test_a_claim_that_finds_only_full_limit_groups_continues_behind_them(database):
    database.limit("kind:work", concurrency_per_key=1, key="tenant_id")
    worker = database.worker()
    for number in range(30):
        database.of(f"{number:02}", 2)
    assert len(database.take(worker, limit=30).ids) == 30
    database.of("99", 1)
    looks, after = 0, ""
    while not (taken := database.take(worker, after=after, steps=10)).ids:
        assert taken.told["more"]
        after, looks = taken.told["cursors"]["default"], looks + 1
    assert (taken.tenants, looks <= 4) == (["99"], True)


def test_several_limits_take_turns_in_the_slots(database):
    database.limit("kind:work", concurrency=100)
    database.limit("kind:other", concurrency=100)
    worker = database.worker()
    database.many(50)
    database.many(50, kind="other")
    assert Counter(job["kind"] for job in database.take(worker, limit=10).jobs) == {"work": 5, "other": 5}
