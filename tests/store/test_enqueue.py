"""`tenure.enqueue`: the only way to add jobs, for every driver and language."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from tenure.store import jobs
from tests.store.database import Database
from tests.store.locks import meanwhile, waits_for_a_lock
from tests.store.paused_inserts import paused_inserts


def enqueue(database: Database, given: Any, *, again: bool = False) -> list[tuple[Any, ...]]:
    return database.sql(
        "select id::text, existed from tenure.enqueue(%s, %s)", given if isinstance(given, str) else json.dumps(given), again
    )


def test_what_is_left_out_takes_its_default(database):
    [(job_id, existed)] = enqueue(database, [{"kind": "work"}])
    job = database.job(job_id)
    assert not existed
    assert UUID(job_id).version == 7
    wanted = {
        "kind": "work",
        "queue": "default",
        "state": "pending",
        "priority": 50,
        "capability": None,
        "attempt": 0,
        "max_attempts": 3,
        "crashes": 0,
        "fence": 0,
        "run_at": None,
        "error": None,
        "input": {},
        "worker_id": None,
    }
    assert {name: job[name] for name in wanted} == wanted


def test_what_is_given_is_kept(database):
    mine = str(uuid4())
    given = {
        "id": mine,
        "kind": "k",
        "queue": "q",
        "priority": 0,
        "capability": "c",
        "max_attempts": 9,
        "input": {"a": [1, None, "ü"]},
    }
    assert enqueue(database, [given]) == [(mine, False)]
    job = database.job(mine)
    assert {name: job[name] if name != "id" else str(job[name]) for name in given} == given


def test_ids_made_by_the_database_are_version_7_and_distinct(database):
    made = [UUID(row[0]) for row in enqueue(database, [{"kind": "work"}] * 50)]
    assert {job_id.version for job_id in made} == {7}
    assert {job_id.variant for job_id in made} == {uuid4().variant}
    assert len(set(made)) == 50
    written = datetime.fromtimestamp((made[0].int >> 80) / 1000, UTC)
    assert abs(written - datetime.now(UTC)) < timedelta(minutes=1)


def test_answers_and_places_come_in_the_order_given(database):
    given = [str(uuid4()) for _ in range(30)]
    assert [row[0] for row in enqueue(database, [{"id": job_id, "kind": "work"} for job_id in given])] == given
    assert [row[0] for row in database.sql("select id::text from tenure.jobs order by position")] == given


def test_later_by_delay_and_by_time(database):
    soon = datetime.now(UTC) + timedelta(hours=1)
    given = [{"delay": 3600}, {"run_at": soon.isoformat()}, {"delay": 0}, {"run_at": "2020-01-01T00:00:00Z"}, {}]
    rows = enqueue(database, [{"kind": "work", **job} for job in given])
    found = [database.job(row[0]) for row in rows]
    assert [job["state"] for job in found] == ["scheduled", "scheduled", "pending", "pending", "pending"]
    assert found[1]["run_at"] == soon
    assert abs(found[0]["run_at"] - soon) < timedelta(minutes=1)
    assert [job["run_at"] for job in found[2:]] == [None] * 3
    positions = database.sql("select position from tenure.jobs where state = 'scheduled'")
    assert positions == [(0,), (0,)]


def test_an_empty_list_is_allowed(database):
    assert enqueue(database, []) == []


def test_a_repeated_id_is_not_made_twice(database):
    mine, new = str(uuid4()), str(uuid4())
    enqueue(database, [{"id": mine, "kind": "work", "input": 1}], again=True)
    given = [{"id": mine, "kind": "other", "input": 2}, {"id": new, "kind": "work"}]
    assert sorted(enqueue(database, given, again=True)) == sorted([(mine, True), (new, False)])
    assert database.job(mine)["kind"] == "work"
    assert database.sql("select count(*) from tenure.jobs") == [(2,)]


def test_asked_again_a_finished_job_is_not_made_a_second_time(database):
    mine = str(uuid4())
    enqueue(database, [{"id": mine, "kind": "work"}])
    claim = database.claim(database.worker())
    database.run(jobs.finish(claim.finished(output=1)))
    enqueue(database, [{"id": mine, "kind": "work"}], again=True)
    assert database.sql("select count(*) from tenure.jobs") == [(0,)]
    assert database.job(mine)["state"] == "completed"


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize(
    "bad",
    [
        {"input": {}},
        {"kind": None},
        {"kind": ""},
        {"kind": "work", "queue": ""},
        {"kind": "work", "priority": 101},
        {"kind": "work", "priority": -1},
        {"kind": "work", "priority": 100_000},
        {"kind": "work", "priority": "high"},
        {"kind": "work", "max_attempts": 0},
        {"kind": "work", "id": "me"},
        {"kind": "work", "run_at": "whenever"},
        {"kind": "work", "input": {"a": "\u0000"}},
    ],
    ids=str,
)
def test_one_bad_job_refuses_them_all(database, bad, again):
    with pytest.raises(psycopg.Error) as caught:
        enqueue(database, [{"kind": "work"}, bad, {"kind": "work"}], again=again)
    assert caught.value.sqlstate[:2] in ("22", "23")
    assert database.sql("select count(*) from tenure.jobs") == [(0,)]


@pytest.mark.parametrize("text", ["", "{", '{"kind": "work"}', "[1]", "null", '"work"', '[{"kind": "work"'])
def test_what_is_not_a_list_of_jobs_is_refused(database, text):
    with pytest.raises(psycopg.Error):
        enqueue(database, text)
    assert database.sql("select count(*) from tenure.jobs") == [(0,)]


def test_it_shares_the_fate_of_the_callers_transaction(database, other):
    database.sql("create table orders (id int)")
    try:
        for kept in (False, True):
            with other.connection.transaction(force_rollback=not kept):
                other.sql("insert into orders values (1)")
                other.sql("""select tenure.enqueue('[{"kind": "work"}]')""")
            assert database.sql("select (select count(*) from orders), (select count(*) from tenure.jobs)") == [(kept, kept)]
    finally:
        database.sql("drop table orders")


def test_a_trigger_can_enqueue_jobs(database):
    database.sql("create table orders (id int)")
    database.sql("""
        create function enqueue_order() returns trigger language plpgsql as $$
        begin
            perform tenure.enqueue(
                json_build_array(json_build_object('kind', 'ship', 'input', json_build_object('id', new.id)))::text);
            return new;
        end $$""")
    database.sql("create trigger ship after insert on orders for each row execute function enqueue_order()")
    try:
        database.sql("insert into orders values (1), (2)")
        assert database.sql("select input ->> 'id' from tenure.jobs order by position") == [("1",), ("2",)]
    finally:
        database.sql("drop table orders; drop function enqueue_order")


def test_the_callers_search_path_does_not_matter(database):
    database.sql("create schema trap; create function trap.nextval(text) returns bigint language sql as 'select 1 / 0'")
    try:
        database.sql("set search_path = trap")
        assert len(enqueue(database, [{"kind": "work"}])) == 1
    finally:
        database.sql("reset search_path; drop schema trap cascade")


def test_the_digest_of_an_input_does_not_depend_on_the_callers_search_path(database):
    digest = "select tenure.input_digest(jsonb_build_object('a', 1))"
    expected = database.sql(digest)
    database.sql("create schema trap; create function trap.encode(bytea, text) returns text language sql as $$ select 'x' $$")
    try:
        database.sql("set search_path = trap, pg_catalog")
        assert database.sql(digest) == expected
    finally:
        database.sql("reset search_path; drop schema trap cascade")


@pytest.mark.parametrize("again", [False, True])
def test_the_same_id_twice_in_one_call_is_refused_or_makes_one_job(database, again):
    database.sql("set statement_timeout = '2s'")
    mine = str(uuid4())
    try:
        enqueue(database, [{"id": mine, "kind": "work"}, {"id": mine, "kind": "work"}], again=again)
    except psycopg.errors.UniqueViolation:
        assert database.sql("select count(*) from tenure.jobs") == [(0,)]
    else:
        assert database.sql("select count(*) from tenure.jobs") == [(1,)]


def test_every_job_is_answered_for_when_asked_again_as_well(database):
    met, new = str(uuid4()), str(uuid4())
    enqueue(database, [{"id": met, "kind": "work"}])
    given = [{"id": met, "kind": "work"}, {"id": new, "kind": "work"}]
    assert sorted(enqueue(database, given, again=True)) == sorted([(met, True), (new, False)])


WAITING = "wait_event = 'advisory' and datname = current_database()"


ENTERING: dict[str, Callable[[Database], object]] = {
    "one": lambda other: other.enqueue({"meta": {}}),
    "two": lambda other: other.enqueue({"meta": {}}, {"meta": {}}),
    "directly": lambda other: other.fetch(jobs.enqueue_one('{"kind": "work", "meta": {}}')),
}


@pytest.mark.parametrize("way", ENTERING)
async def test_a_transaction_has_its_number_before_its_jobs_have_their_places(database, other, way):
    """Workers pass a position when all transactions up to some number have ended."""
    for _ in range(3):  # a sequence that happens to be logged gives its transaction a number as well
        database.enqueue({})
        with paused_inserts(database):
            entering = meanwhile(lambda: ENTERING[way](other))
            await waits_for_a_lock(database)
            numbered = database.sql(f"select backend_xid is not null from pg_stat_activity where {WAITING}")
            database.sql("select pg_advisory_unlock(1)")
            entering()
        assert numbered == [(True,)]
