"""Limits come, change and go while jobs are there."""

from __future__ import annotations

import json
import logging
from uuid import UUID

import pytest

from tenure.model.kinds import Registry
from tenure.store import jobs, limits
from tenure.store.link import Link
from tenure.worker.claim.known_limits import KnownLimits
from tests.store.desk import everything


def adopt(desk, *, kinds=("work",), queues=(), limit=100, lanes=None):
    lanes = json.dumps([{"place": place, **lane} for place, lane in enumerate(lanes or [everything()])])
    rows = desk.run(limits.adopt(lanes, kinds=kinds, queues=queues, limit=limit))
    return len([row for row in rows if row[1] is not None])


def test_jobs_from_before_the_limit_are_adopted_some_at_a_time(desk):
    desk.of("a", 3)
    desk.many(2, kind="other")
    desk.limit("kind:work", concurrency_per_key=1, key="tenant_id")
    assert adopt(desk, limit=2) == 2
    assert adopt(desk) == 1
    assert adopt(desk) == 0
    assert desk.limit_groups() == {"kind:work/tenant_id=a": 3, None: 2}


def test_in_a_limited_queue_every_kind_is_adopted(desk):
    desk.many(1)
    desk.many(1, kind="nobody knows")
    desk.limit("queue:default", concurrency=1)
    assert adopt(desk, kinds=(), queues=["default"]) == 2
    assert desk.limit_groups() == {"queue:default": 2}


def test_what_runs_already_counts_under_a_new_limit(desk):
    worker = desk.worker()
    desk.many(3)
    assert len(desk.claim(worker, limit=2).ids) == 2
    desk.limit("kind:work", concurrency=3)
    assert desk.run(limits.adopt_held(worker)) == [(2, None)]
    adopt(desk)
    desk.many(5)
    assert len(desk.take(worker).ids) == 1
    assert desk.run(limits.adopt_held(worker)) == [(0, None)]


def test_when_a_limit_goes_its_jobs_are_free_and_everybody_looks_again(desk):
    desk.limit("kind:work", concurrency=1)
    worker = desk.worker()
    ids = desk.many(3)
    desk.run(limits.reset("kind:work", declared=True))
    assert desk.run(limits.regroup(["default"], limit=2)) == [(2, True, None)]
    assert desk.run(limits.regroup(["default"], limit=2)) == [(1, False, None)]
    assert desk.run(limits.regroup(["default"], limit=2)) == [(0, False, None)]
    assert desk.sql("select returns from tenure.queues where name = 'default'") == [(2,)]
    desk.sql("update tenure.limit_changes set version = 0")
    assert sorted(desk.claim(worker).ids) == sorted(ids)


def test_groups_of_another_key_are_assigned_again_and_not_claimed_before(desk):
    desk.limit("kind:work", concurrency_per_key=1, key="tenant_id")
    worker = desk.worker()
    desk.enqueue(*({"input": {"tenant_id": n, "region": "eu"}} for n in range(5)))
    desk.limit("kind:work", concurrency_per_key=1, key="region")
    taken = desk.take(worker)
    assert (taken.ids, taken.told["stale"]) == ([], True)
    assert desk.run(limits.regroup(["default"], limit=100)) == [(5, False, None)]
    assert desk.limit_groups() == {"kind:work/region=eu": 5}
    assert len(desk.take(worker).ids) == 1


def test_groups_that_fit_are_left_alone(desk):
    desk.limit("kind:work", concurrency_per_key=1, key="tenant_id")
    desk.of("a", 3)
    desk.limit("kind:work", concurrency_per_key=5, key="tenant_id")
    assert desk.run(limits.regroup(["default"], limit=100)) == [(0, False, None)]


def test_a_higher_bound_counts_at_once_and_a_lower_one_as_soon_as_it_can(desk):
    desk.limit("kind:work", concurrency=2)
    worker = desk.worker()
    desk.many(10)
    assert len(desk.take(worker).ids) == 2
    desk.run(limits.override("kind:work", {"concurrency": 4}, None))
    assert len(desk.take(worker).ids) == 2
    desk.run(limits.override("kind:work", {"concurrency": 1}, None))
    assert desk.take(worker).ids == []


def learned(desk, *queues):
    """Whether jobs wait under limits, and whether some wait under none that holds."""
    return desk.run(limits.learn(queues or ["default"]))[0][3:]


def test_jobs_that_wait_under_a_limit_that_is_gone_are_noticed_beside_those_of_others(desk):
    names = ("a", "a-b", "b")
    for name in (*names, "a/b"):
        desk.limit(f"kind:{name}", concurrency_per_key=1, key="tenant_id")
    desk.limit("queue:default", concurrency=9)
    assert learned(desk) == (False, False)
    for name in (*names, "a/b"):
        desk.of("x", kind=name)
    assert learned(desk) == (True, False)
    for name in names:
        desk.run(limits.reset(f"kind:{name}", declared=True))
        assert learned(desk) == (True, True)
        desk.run(limits.regroup(["default"], limit=100))
        assert learned(desk) == (True, False)
    desk.run(limits.reset("queue:default", declared=True))
    assert learned(desk) == (True, True)
    assert learned(desk, "mail") == (False, False)
    desk.run(limits.regroup(["default"], limit=100))
    assert learned(desk) == (True, False)
    assert desk.limit_groups() == {None: 3, "kind:a/b/tenant_id=x": 1}


async def test_a_job_whose_limit_group_cannot_be_written_holds_up_no_other(place, desk, caplog):
    """Under a new limit, when it runs already, and when the limit is gone."""
    desk.sql("create function refuse() returns trigger language plpgsql as $$ begin raise exception 'no'; end $$")
    desk.sql("create trigger refuse before update on tenure.jobs for each row when (old.input ? 'bad') execute function refuse()")
    worker = desk.worker()
    link = Link(place, "limits", hot=True)
    known_limits = KnownLimits(link, Registry(), ["default"], worker, lambda _: None)
    try:
        desk.many(5)
        [bad] = desk.enqueue({"input": {"bad": True}})
        desk.many(5)
        desk.limit("queue:default", concurrency=1)
        await known_limits.keep()
        assert desk.limit_groups() == {"queue:default": 10, None: 1}
        desk.run(limits.reset("queue:default", declared=True))
        desk.sql("alter table tenure.jobs disable trigger refuse")
        desk.sql("update tenure.jobs set limit_group = 'queue:default'")
        desk.sql("alter table tenure.jobs enable trigger refuse")
        known_limits.doubt()
        await known_limits.keep()
        assert desk.limit_groups() == {"queue:default": 1, None: 10}
        known_limits.report_outdated_groups()
        await known_limits.keep()
        assert not known_limits.report_outdated_groups(), "a row that is refused is not looked at again and again"
    finally:
        await link.close()
        desk.sql("drop function refuse() cascade")
    [told] = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert told.job_id == bad


@pytest.mark.parametrize("how", ["due", "retried", "replayed"])
def test_a_job_that_becomes_pending_is_under_the_limits_of_now(desk, how):
    desk.limit("kind:work", concurrency=1)
    [job_id] = desk.enqueue({"delay": 3600})
    assert desk.job(job_id)["limit_group"] == "kind:work"
    desk.run(limits.reset("kind:work", declared=True))
    match how:
        case "due":
            desk.sql("update tenure.jobs set run_at = now() - interval '1 s'")
            desk.run(jobs.promote(desk.term("stager"), limit=10))
        case "retried":
            desk.run(jobs.retry(UUID(job_id), "ada"))
        case "replayed":
            desk.sql("update tenure.jobs set state = 'dead_letter'")
            desk.run(jobs.replay([UUID(job_id)]))
    assert (desk.job(job_id)["state"], desk.job(job_id)["limit_group"]) == ("pending", None)
