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
from tests.store.database import everything
from tests.store.forged_jobs import change_state


def adopt(database, *, kinds=("work",), queues=(), limit=100, lanes=None):
    lanes = json.dumps([{"ordinal": ordinal, **lane} for ordinal, lane in enumerate(lanes or [everything()])])
    [(_, adopted, _)] = database.run(limits.adopt(lanes, kinds=kinds, queues=queues, limit=limit))
    return len(json.loads(adopted or "[]"))


def test_jobs_from_before_the_limit_are_adopted_some_at_a_time(database):
    database.of("a", 3)
    database.many(2, kind="other")
    database.limit("kind:work", concurrency_per_key=1, key="tenant_id")
    assert adopt(database, limit=2) == 2
    assert adopt(database) == 1
    assert adopt(database) == 0
    assert database.limit_groups() == {"kind:work/tenant_id=a": 3, None: 2}


def test_in_a_limited_queue_every_kind_is_adopted(database):
    database.many(1)
    database.many(1, kind="unregistered")
    database.limit("queue:default", concurrency=1)
    assert adopt(database, kinds=(), queues=["default"]) == 2
    assert database.limit_groups() == {"queue:default": 2}


def test_what_runs_already_counts_under_a_new_limit(database):
    worker = database.worker()
    database.many(3)
    assert len(database.claim(worker, limit=2).ids) == 2
    database.limit("kind:work", concurrency=3)
    assert database.run(limits.adopt_held(worker)) == [(2, None)]
    adopt(database)
    database.many(5)
    assert len(database.take(worker).ids) == 1
    assert database.run(limits.adopt_held(worker)) == [(0, None)]


def test_when_a_limit_is_removed_its_jobs_are_free_and_all_workers_search_again(database):
    database.limit("kind:work", concurrency=1)
    worker = database.worker()
    ids = database.many(3)
    database.run(limits.reset("kind:work", declared=True))
    assert database.run(limits.regroup(["default"], limit=2)) == [(2, True, None)]
    assert database.run(limits.regroup(["default"], limit=2)) == [(1, False, None)]
    assert database.run(limits.regroup(["default"], limit=2)) == [(0, False, None)]
    assert database.sql("select returns from tenure.queues where name = 'default'") == [(2,)]
    database.sql("update tenure.limit_changes set version = 0")
    assert sorted(database.claim(worker).ids) == sorted(ids)


def test_groups_of_another_key_are_assigned_again_and_not_claimed_before(database):
    database.limit("kind:work", concurrency_per_key=1, key="tenant_id")
    worker = database.worker()
    database.enqueue(*({"input": {"tenant_id": n, "region": "eu"}} for n in range(5)))
    database.limit("kind:work", concurrency_per_key=1, key="region")
    taken = database.take(worker)
    assert (taken.ids, taken.told["stale"]) == ([], True)
    assert database.run(limits.regroup(["default"], limit=100)) == [(5, False, None)]
    assert database.limit_groups() == {"kind:work/region=eu": 5}
    assert len(database.take(worker).ids) == 1


def test_groups_that_fit_are_left_alone(database):
    database.limit("kind:work", concurrency_per_key=1, key="tenant_id")
    database.of("a", 3)
    database.limit("kind:work", concurrency_per_key=5, key="tenant_id")
    assert database.run(limits.regroup(["default"], limit=100)) == [(0, False, None)]


def test_a_higher_bound_counts_at_once_and_a_lower_one_as_soon_as_it_can(database):
    database.limit("kind:work", concurrency=2)
    worker = database.worker()
    database.many(10)
    assert len(database.take(worker).ids) == 2
    database.run(limits.override("kind:work", {"concurrency": 4}, None))
    assert len(database.take(worker).ids) == 2
    database.run(limits.override("kind:work", {"concurrency": 1}, None))
    assert database.take(worker).ids == []


def learned(database, *queues):
    """Whether jobs wait under limits, and whether some wait under none that holds."""
    return database.run(limits.learn(queues or ["default"]))[0][3:]


def test_jobs_that_wait_under_a_limit_that_is_gone_are_noticed_beside_those_of_others(database):
    names = ("a", "a-b", "b")
    for name in (*names, "a/b"):
        database.limit(f"kind:{name}", concurrency_per_key=1, key="tenant_id")
    database.limit("queue:default", concurrency=9)
    assert learned(database) == (False, False)
    for name in (*names, "a/b"):
        database.of("x", kind=name)
    assert learned(database) == (True, False)
    for name in names:
        database.run(limits.reset(f"kind:{name}", declared=True))
        assert learned(database) == (True, True)
        database.run(limits.regroup(["default"], limit=100))
        assert learned(database) == (True, False)
    database.run(limits.reset("queue:default", declared=True))
    assert learned(database) == (True, True)
    assert learned(database, "mail") == (False, False)
    database.run(limits.regroup(["default"], limit=100))
    assert learned(database) == (True, False)
    assert database.limit_groups() == {None: 3, "kind:a/b/tenant_id=x": 1}


async def test_a_job_whose_limit_group_cannot_be_written_holds_up_no_other(database_target, database, caplog):
    """Under a new limit, when it runs already, and when the limit is gone."""
    database.sql("create function refuse() returns trigger language plpgsql as $$ begin raise exception 'no'; end $$")
    database.sql(
        "create trigger refuse before update on tenure.jobs for each row when (old.input ? 'bad') execute function refuse()"
    )
    worker = database.worker()
    link = Link(database_target, "limits", hot=True)
    known_limits = KnownLimits(link, Registry(), ["default"], worker, lambda _: None)
    try:
        database.many(5)
        [bad] = database.enqueue({"input": {"bad": True}})
        database.many(5)
        database.limit("queue:default", concurrency=1)
        await known_limits.keep()
        assert database.limit_groups() == {"queue:default": 10, None: 1}
        database.run(limits.reset("queue:default", declared=True))
        database.sql("alter table tenure.jobs disable trigger refuse")
        database.sql("update tenure.jobs set limit_group = 'queue:default'")
        database.sql("alter table tenure.jobs enable trigger refuse")
        known_limits.doubt()
        await known_limits.keep()
        assert database.limit_groups() == {"queue:default": 1, None: 10}
        known_limits.report_outdated_groups()
        await known_limits.keep()
        assert not known_limits.report_outdated_groups(), "a row that is refused is not looked at again and again"
    finally:
        await link.close()
        database.sql("drop function refuse() cascade")
    [told] = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert told.job_id == bad


@pytest.mark.parametrize("how", ["due", "retried", "replayed"])
def test_a_job_that_becomes_pending_is_under_the_limits_of_now(database, how):
    database.limit("kind:work", concurrency=1)
    [job_id] = database.enqueue({"delay": 3600})
    assert database.job(job_id)["limit_group"] == "kind:work"
    database.run(limits.reset("kind:work", declared=True))
    match how:
        case "due":
            database.sql("update tenure.jobs set run_at = now() - interval '1 s'")
            database.run(jobs.promote(database.term("stager"), limit=10))
        case "retried":
            database.run(jobs.retry(UUID(job_id), "ada"))
        case "replayed":
            change_state(database.sql, "dead_letter")
            database.run(jobs.replay([UUID(job_id)]))
    assert (database.job(job_id)["state"], database.job(job_id)["limit_group"]) == ("pending", None)
