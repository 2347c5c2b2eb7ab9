"""Limit groups take turns: none starves, however many jobs others have."""

from __future__ import annotations

from collections import Counter


def drained(desk, worker, count, *, limit=1, **more):
    """The tenants in the order in which they were served, by a worker that remembers where it was."""
    served, after = [], ""
    for _ in range(count):
        taken = desk.take(worker, limit=limit, after=after, **more)
        served += taken.tenants
        after = (taken.told.get("cursors") or {}).get("default", after)
    return served


def test_one_job_beside_twenty_thousand_is_among_the_first(desk):
    desk.limit("kind:work", fair=True, key="tenant_id")
    worker = desk.worker()
    desk.of("a", 20_000)
    desk.of("b")
    assert "b" in drained(desk, worker, 2)
    desk.of("b")
    assert "b" in desk.take(worker, limit=10).tenants


def test_turns_come_before_priorities_where_the_limit_is_fair(desk):
    desk.limit("kind:work", fair=True, key="tenant_id")
    worker = desk.worker()
    desk.of("a", 20, priority=100)
    desk.of("b", 3, priority=0)
    assert Counter(drained(desk, worker, 6)) == {"a": 3, "b": 3}


def test_all_get_the_same_share(desk):
    desk.limit("kind:work", fair=True, key="tenant_id")
    worker = desk.worker()
    for tenant, count in (("a", 100), ("b", 50), ("c", 50)):
        desk.of(tenant, count)
    assert Counter(drained(desk, worker, 10, limit=3)) == {"a": 10, "b": 10, "c": 10}


def test_more_limit_groups_than_one_claim_reaches_are_all_served(desk):
    desk.limit("kind:work", concurrency_per_key=1, key="tenant_id")
    worker = desk.worker()
    tenants = [f"{number:03}" for number in range(50)]
    for tenant in tenants:
        desk.of(tenant, 2)
    assert sorted(drained(desk, worker, 60, steps=7)) == tenants


def test_a_claim_that_finds_only_full_limit_groups_continues_behind_them(desk):
    desk.limit("kind:work", concurrency_per_key=1, key="tenant_id")
    worker = desk.worker()
    for number in range(30):
        desk.of(f"{number:02}", 2)
    assert len(desk.take(worker, limit=30).ids) == 30
    desk.of("99", 1)
    looks, after = 0, ""
    while not (taken := desk.take(worker, after=after, steps=10)).ids:
        assert taken.told["more"]
        after, looks = taken.told["cursors"]["default"], looks + 1
    assert (taken.tenants, looks <= 4) == (["99"], True)


def test_several_limits_take_turns_in_the_slots(desk):
    desk.limit("kind:work", concurrency=100)
    desk.limit("kind:other", concurrency=100)
    worker = desk.worker()
    desk.many(50)
    desk.many(50, kind="other")
    assert Counter(job["kind"] for job in desk.take(worker, limit=10).jobs) == {"work": 5, "other": 5}
