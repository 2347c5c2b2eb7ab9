"""Every job under a limit has its limit group, however it was enqueued."""

from __future__ import annotations

import json

import pytest

from tenure.store import jobs, limits
from tests.store.forged_jobs import change_state


def test_a_job_of_a_limited_kind_gets_its_limit_group_when_it_is_enqueued_and_no_other(database):
    database.limit("kind:work", concurrency=1)
    database.enqueue({}, {"kind": "other"})
    assert database.limit_groups() == {"kind:work": 1, None: 1}


@pytest.mark.parametrize(
    ("given", "group"),
    [
        ({"tenant_id": 42}, "kind:work/tenant_id=42"),
        ({"tenant_id": "42"}, "kind:work/tenant_id=42"),
        ({"tenant_id": "a\nb\rc"}, "kind:work/tenant_id=a b c"),
        ({"tenant_id": None}, "kind:work/tenant_id="),
        ({}, "kind:work/tenant_id="),
        ({"tenant_id": {"a": 1}}, 'kind:work/tenant_id={"a": 1}'),
    ],
)
def test_the_key_is_the_value_at_the_end_of_the_path(database, given, group):
    database.limit("kind:work", concurrency_per_key=1, key="tenant_id")
    database.enqueue({"input": given})
    assert database.limit_groups() == {group: 1}


def test_a_path_leads_into_the_depth_and_what_is_left_out_has_the_default(database):
    database.limit("kind:work", concurrency_per_key=1, key="message.to.city", otherwise="Rome")
    database.enqueue({"input": {"message": {"to": {"city": "Oslo"}}}}, {"input": {"message": {}}}, {"input": {}})
    assert database.limit_groups() == {"kind:work/message.to.city=Oslo": 1, "kind:work/message.to.city=Rome": 2}


def test_long_keys_stay_themselves(database):
    database.limit("kind:work", concurrency_per_key=1, key="tenant_id")
    database.of("x" * 5000 + "a")
    database.of("x" * 5000 + "b")
    assert len(database.limit_groups()) == 2


def test_kind_and_queue_limit_a_job_together(database):
    database.limit("kind:work", concurrency=1)
    database.limit("queue:mail", concurrency_per_key=1, key="tenant_id")
    database.of("7", queue="mail")
    database.of("7")
    database.of("7", kind="other", queue="mail")
    assert database.limit_groups() == {"kind:work\nqueue:mail/tenant_id=7": 1, "kind:work": 1, "queue:mail/tenant_id=7": 1}


def test_jobs_enqueued_again_and_for_later_have_their_limit_group(database):
    database.limit("kind:work", concurrency=1)
    text = json.dumps([{"id": "00000000-0000-7000-8000-000000000001", "kind": "work"}])
    database.sql("select tenure.enqueue(%s, true)", text)
    database.enqueue({"delay": 60})
    assert database.limit_groups() == {"kind:work": 2}


def test_a_limit_without_bounds_limits_nothing(database):
    database.limit("kind:work", key="tenant_id")
    database.enqueue({})
    assert database.limit_groups() == {None: 1}


def test_a_dead_letter_replayed_with_other_input_belongs_to_the_group_of_that(database):
    database.limit("kind:work", concurrency_per_key=1, key="tenant_id")
    [job_id] = database.of("7")
    change_state(database.sql, "dead_letter")
    database.run(jobs.replay([job_id], input='{"tenant_id": "8"}'))
    assert database.limit_groups() == {"kind:work/tenant_id=8": 1}


def test_a_finished_job_that_is_retried_gets_the_current_limit_group(database):
    worker = database.worker()
    [job_id] = database.enqueue({})
    database.run(jobs.finish(database.claim(worker).finished()))
    database.limit("kind:work", concurrency=1)
    database.run(jobs.retry_finished(job_id, "00000000-0000-7000-8000-000000000002", None))
    assert database.limit_groups() == {"kind:work": 1}


def test_what_was_set_at_run_time_wins_over_what_is_declared_word_by_word(database):
    database.limit("kind:work", concurrency=5, rate=[10, 60])
    database.run(limits.override("kind:work", {"concurrency": 2}, "ann"))
    assert database.rules() == {"kind:work": {"concurrency": 2, "rate": [10, 60]}}
    database.limit("kind:work", concurrency=7, rate=[20, 60])  # a worker of a newer version starts
    assert database.rules() == {"kind:work": {"concurrency": 2, "rate": [20, 60]}}
    database.run(limits.override("kind:work", {"rate": None}, "ann"))
    assert database.rules() == {"kind:work": {"concurrency": 2}}
    assert database.run(limits.reset("kind:work")) == [('{"rate": [20, 60], "concurrency": 7}',)]
    assert database.run(limits.reset("kind:work")) == []
    assert database.run(limits.reset("kind:work", declared=True)) == [("{}",)]
    assert database.rules() == {}


def test_declaring_the_same_changes_nothing(database):
    version = "select version from tenure.limit_changes"
    database.limit("kind:work", concurrency=5)
    assert database.sql(version) == [(1,)]
    database.limit("kind:work", concurrency=5)
    assert database.sql(version) == [(1,)]


def test_versions_come_in_the_order_of_commits(database, other):
    """A change that is not committed holds up the next: a version that is seen never hides an older change."""
    with other.connection.transaction():
        other.limit("kind:work", concurrency=5)
        database.sql("set lock_timeout = '100ms'")
        with pytest.raises(Exception, match="lock timeout"):
            database.limit("kind:other", concurrency=5)
    database.limit("kind:other", concurrency=5)
    assert database.sql("select version from tenure.limit_changes") == [(2,)]
