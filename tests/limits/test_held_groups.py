"""A job counts towards its limits from its claim until it is held no more, whichever way it leaves."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tenure.store import claims, jobs, limits, workers
from tests.limits.limits_database import LimitsDatabase, Taken

Way = Callable[[LimitsDatabase, str, Taken], None]

GROUP = "kind:work/tenant_id=7"
GROUPS = "select state, limit_group, held_group from tenure.jobs where id = %s"


def move(**outcome: object) -> Way:
    return lambda database, _, taken: database.run(jobs.move(taken.outcomes(**outcome)))


def requeue(database: LimitsDatabase, worker: str, _: Taken) -> None:
    database.condemn(worker)
    database.return_jobs()


def expire(database: LimitsDatabase, _worker: str, _taken: Taken) -> None:
    database.sql("update tenure.jobs set lease_until = now() - interval '1 s' where claim_id is not null")
    database.run(jobs.expire(database.term("reaper"), limit=10, max_crashes=workers.MAX_CRASHES))


def the_third_time(way: Way) -> Way:
    def crash(database: LimitsDatabase, worker: str, taken: Taken) -> None:
        database.sql("update tenure.jobs set crashes = 2 where claim_id is not null")
        way(database, worker, taken)

    return crash


# And the state in which the job then is; None: it has left the table.
WAYS: dict[str, tuple[Way, str | None]] = {
    "requeued": (move(state="pending", refund=1), "pending"),
    "retried": (move(state="retry", delay=60, error="oh"), "retry"),
    "snoozed": (move(state="scheduled", delay=60, refund=1), "scheduled"),
    "dead-lettered": (move(state="dead_letter", error="oh"), "dead_letter"),
    "disowned": (lambda database, _, taken: database.run(claims.disown(taken.held, ["default"])), "pending"),
    "returned": (requeue, "pending"),
    "returned the third time": (the_third_time(requeue), "dead_letter"),
    "expired": (expire, "pending"),
    "expired the third time": (the_third_time(expire), "dead_letter"),
    "finished": (lambda database, _, taken: database.run(jobs.finish(taken.finished())), None),
    "canceled": (lambda database, _, taken: database.run(jobs.cancel(taken.ids, error="canceled")), None),
    "deleted": (lambda database, _, taken: database.run(jobs.delete(taken.ids, force=True)), None),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_job_counts_while_it_is_held_and_not_a_moment_longer(database, way):
    leave, state = WAYS[way]
    database.limit("kind:work", concurrency_per_key=1, key="tenant_id")
    [job_id] = database.of("7")
    assert database.sql(GROUPS, job_id) == [("pending", GROUP, None)]
    worker = database.worker()
    taken = database.take(worker)
    assert taken.ids == [job_id]
    assert database.sql(GROUPS, job_id) == [("running", GROUP, GROUP)]
    [second] = database.of("7")
    assert database.take(database.worker()).ids == [], "the limit is full"

    leave(database, worker, taken)

    assert database.sql(GROUPS, job_id) == ([] if state is None else [(state, GROUP, None)])
    free = job_id if state == "pending" else second
    if way in ("returned", "expired"):
        database.sql("update tenure.jobs set crashes = 0")  # as any other job
    assert database.take(database.worker()).ids == [free], "there is room for one again, and no more"
    assert database.take(database.worker()).ids == []


def test_a_job_that_is_not_limited_counts_nowhere(database):
    database.many(1)
    database.claim(database.worker())
    assert database.sql("select state, limit_group, held_group from tenure.jobs") == [("running", None, None)]


def test_a_run_counts_from_when_its_kind_is_limited_until_it_is_not(database):
    database.many(2)
    worker = database.worker()
    claim = database.claim(worker, limit=1)
    database.limit("kind:work", concurrency=1)
    assert database.run(limits.adopt_held(worker)) == [(1, None)]
    assert database.sql(GROUPS, claim.ids[0]) == [("running", "kind:work", "kind:work")]
    assert database.take(database.worker()).ids == []
    database.run(limits.reset("kind:work", declared=True))
    assert database.run(limits.adopt_held(worker)) == [(1, None)]
    assert database.sql(GROUPS, claim.ids[0]) == [("running", None, None)]
    assert database.run(limits.adopt_held(worker)) == [(0, None)], "what is right is not written again"
