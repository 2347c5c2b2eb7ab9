"""A plain job alone is written by `tenure.enqueue_one`, which enqueue and clients call: as in a batch, only cheaper."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tenure.store import jobs
from tests.store.database import Database

SOME_ID = "0198f000-0000-7000-8000-000000000001"

PLAIN: list[dict[str, Any]] = [
    {"kind": "work"},
    {"kind": "work", "input": None, "auth": None, "meta": None, "queue": None, "priority": None, "by": None, "claim": None},
    {"kind": "work", "input": [1, None, "ü", {"key": "x", "delay": 5}], "auth": {"user": 7}, "meta": {"a": "b"}, "by": "me"},
    {"kind": "work", "system": {"headers": {"traceparent": "00-1-2-01"}}, "meta": {"a": "b"}},
    {"kind": "work", "system": None},
    {"kind": "work", "input": "text", "auth": "text", "meta": 1.50},
    {"kind": "work", "queue": "mail", "priority": 0, "capability": "gpu", "max_attempts": 9, "timeout": 0.25},
    {"kind": "work", "priority": "7", "max_attempts": "2", "timeout": "1e3", "queue": 5, "capability": True},
    {"kind": {"a": 1}, "by": ["x"]},
    {"kind": "limited", "input": {"tenant": 3}},
    {"kind": "work", "queue": "limited", "input": {"tenant": None}},
    {"kind": "work", "key_for": "live", "blockers": 2, "existing_id": SOME_ID, "unknown": 1},
]

BAD: list[Any] = [
    {"input": {}},
    {"kind": None},
    {"kind": ""},
    {"kind": "x" * 201},
    {"kind": "work", "queue": ""},
    {"kind": "work", "queue": "ü" * 101},
    {"kind": "work", "capability": "x" * 201},
    {"kind": "work", "priority": 101},
    {"kind": "work", "priority": 5.5},
    {"kind": "work", "priority": True},
    {"kind": "work", "max_attempts": 0},
    {"kind": "work", "timeout": -1},
    {"kind": "work", "timeout": 1e12},
    {"kind": "work", "timeout": "NaN"},
    {"kind": "work", "id": "me"},
    {"kind": "work", "id": {"a": 1}},
    {"kind": "work", "parent": "me"},
    {"kind": "work", "parent": SOME_ID, "claim": SOME_ID},
    [],
    ["kind"],
    "work",
    1,
    None,
]

SPECIAL: list[dict[str, Any]] = [
    {"key": "k"},
    {"after": []},
    {"delay": 60},
    {"run_at": "2100-01-01T00:00:00Z"},
    {"expires": 60},
    {"expires_at": "2100-01-01T00:00:00Z"},
    {"chain": SOME_ID},
    {"dependants": True},
]

COLUMNS = """state, position > 0, run_at, kind, queue, priority, capability, max_attempts, timeout, input, key, parent_id,
    enqueued_by, auth, meta, system, limit_group, chain_id, dependants, expires_at, attempt, crashes, fence, error"""


def enqueue(database: Database, given: list[Any], *, again: bool = False) -> list[tuple[Any, ...]]:
    return database.sql("select * from tenure.enqueue(%s, %s)", json.dumps(given), again)


def written(database: Database, job_id: str) -> list[tuple[Any, ...]]:
    return database.sql(f"select {COLUMNS} from tenure.jobs where id = %s", job_id)


def calls_of_enqueue_one(database: Database) -> int:
    """In the current transaction."""
    return database.sql("select coalesce(sum(calls), 0) from pg_stat_xact_user_functions where funcname = 'enqueue_one'")[0][0]


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("given", PLAIN, ids=str)
def test_a_plain_job_alone_is_written_as_in_a_batch(database, given, again):
    database.sql("""
        insert into tenure.limits (name, declared)
        select n, '{"concurrency_per_key": 2, "key": "tenant"}' from unnest(array['kind:limited', 'queue:limited']) n""")
    alone, beside, other, direct, borrowed = (str(uuid4()) for _ in range(5))
    with database.connection.transaction():
        database.sql("set local track_functions = 'pl'")
        [answer] = enqueue(database, [{"id": alone, **given}], again=again)
        assert calls_of_enqueue_one(database) == 1
        both = enqueue(database, [{"id": beside, **given}, {"id": other, "kind": "other"}], again=again)
        assert calls_of_enqueue_one(database) == 1
        assert database.fetch(jobs.enqueue_one(json.dumps({"id": direct, **given}))) == []
        assert database.fetch(jobs.enqueue_one_borrowed(json.dumps({"id": borrowed, **given}), "tenure", "jobs default")) == []
        assert calls_of_enqueue_one(database) == 3
    assert [str(value) for value in answer] == [alone, "False", "False", alone]
    assert [str(value) for value in both[0]] == [beside, "False", "False", beside]
    assert written(database, alone) == written(database, beside) != []
    assert written(database, direct) == written(database, borrowed) == written(database, alone)
    counted = database.sql("select queue, kind, what, sum(jobs) from tenure.tallies where kind <> 'other' group by 1, 2, 3")
    [(queue, kind)] = database.sql("select queue, kind from tenure.jobs where id = %s", alone)
    assert counted == [(queue, kind, "enqueued", 4)]


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: str(bad)[:40])
def test_what_a_batch_refuses_is_refused_alone(database, bad):
    states = []
    for given in ([bad], [bad, {"kind": "work"}]):
        with pytest.raises(psycopg.Error) as caught:
            enqueue(database, given)
        states.append(caught.value.sqlstate)
    assert states[0] == states[1]
    if not (isinstance(bad, dict) and "claim" in bad):  # which enqueue checks before
        with pytest.raises(psycopg.Error):
            database.sql("select tenure.enqueue_one(%s)", Jsonb(bad))
    assert database.sql("select count(*) from tenure.jobs") == [(0,)]
    assert database.sql("select count(*) from tenure.tallies") == [(0,)]


@pytest.mark.parametrize("special", SPECIAL, ids=str)
def test_a_job_with_more_to_it_goes_the_general_way(database, special):
    with database.connection.transaction():
        database.sql("set local track_functions = 'pl'")
        assert len(enqueue(database, [{"kind": "work", **special}])) == 1
        assert calls_of_enqueue_one(database) == 0
    with pytest.raises(psycopg.errors.InvalidParameterValue, match=r"call tenure\.enqueue\(\)"):
        database.sql("select tenure.enqueue_one(%s)", Jsonb({"kind": "work", **special}))


def test_a_plain_job_alone_is_a_child_of_the_run_that_enqueues_it(database):
    [parent] = database.enqueue({})
    claim = database.claim(database.worker())
    [child] = database.enqueue({"parent": parent, "claim": claim.id})
    assert database.sql("select parent_id::text from tenure.jobs where id = %s", child) == [(parent,)]


def test_no_member_of_a_job_is_forgotten():
    """Each field is read by enqueue_one, or excludes a job from it, or has no effect without a field that does."""
    general, one = (files("tenure.store").joinpath("functions", f"{name}.sql").read_text() for name in ("enqueue", "enqueue_one"))
    [declared] = re.findall(r"jsonb_to_recordset\(given\) as g\((id uuid, kind text.*?)\)\s", general, re.DOTALL)
    [kept_out] = re.findall(r"\?\| array\[(.*?)\]", general)
    assert re.findall(r"\?\| array\[(.*?)\]", one) == [kept_out]
    read = set(re.findall(r"job ->>? '(\w+)'", one))
    with_others = {"existing_id", "blockers"}  # set by take_keys and block_jobs
    assert (
        set(re.findall(r"(\w+) \w+(?: precision)?(?:,|$)", declared))
        == read | set(re.findall(r"\w+", kept_out)) - {"after"} | with_others
    )
