"""Names and times that no table, index or notification can hold are refused where they come in, also from other languages."""

from __future__ import annotations

import json
from typing import Any

import psycopg
import pytest

from tenure import ConfigError, Limit
from tests.store.database import Database

LONG = "x" * 201

REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "kind": ({"kind": LONG}, "kind is 201 bytes long, at most 200 are allowed"),
    "kind in bytes": ({"kind": "ё" * 101}, "kind is 202 bytes long, at most 200 are allowed"),
    "queue": ({"queue": "x" * 8000}, "queue is 8000 bytes long, at most 200 are allowed"),
    "queue of a scheduled job": ({"queue": "x" * 8000, "delay": 60}, "queue is 8000 bytes long"),
    "capability": ({"capability": LONG}, "capability is 201 bytes long"),
    "key": ({"key": LONG}, "key is 201 bytes long, at most 200 are allowed: use a digest of it"),
    "kind with a key": ({"kind": LONG, "key": "a"}, "kind is 201 bytes long"),
    "key_for": ({"key": "a", "key_for": "soon"}, "key_for must be live, forever or a number of seconds"),
    "endless key_for": ({"key": "a", "key_for": "Infinity"}, "key_for must be live, forever or a number of seconds"),
    "run_at": ({"run_at": "infinity"}, "run_at is infinity, but must lie between the years 1970 and 2200"),
    "early run_at": ({"run_at": "-infinity"}, "run_at is -infinity"),
    "late run_at": ({"run_at": "9999-12-31T00:00:00Z"}, "but must lie between the years 1970 and 2200"),
    "delay": ({"delay": "Infinity"}, "delay is Infinity, but must be seconds"),
    "no delay": ({"delay": "NaN"}, "delay is NaN, but must be seconds"),
    "long delay": ({"delay": 1e300}, "delay is 1e+300, but must be seconds"),
    "timeout": ({"timeout": "Infinity"}, "timeout is Infinity, but must be seconds"),
    "no timeout": ({"timeout": "NaN"}, "timeout is NaN"),
    "negative timeout": ({"timeout": -1}, "timeout is -1"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_the_function_refuses_it_in_plain_words_and_writes_nothing(database: Database, case):
    job, told = REFUSED[case]
    with pytest.raises(psycopg.errors.InvalidParameterValue) as caught:
        database.sql("select * from tenure.enqueue(%s)", json.dumps([{"kind": "fine"}, {"kind": "work", **job}]))
    assert told in str(caught.value)
    assert caught.value.sqlstate[:2] == "22"
    assert database.sql("select count(*) from tenure.all_jobs") == [(0,)]
    assert database.sql("select count(*) from tenure.keys") == [(0,)]


def test_what_is_just_short_enough_is_taken(database: Database):
    name = "ё" * 100
    job = {"kind": name, "queue": name, "capability": name, "key": name, "delay": 3155760000, "timeout": 0}
    database.sql("select * from tenure.enqueue(%s)", json.dumps([job]))
    database.sql("select * from tenure.enqueue(%s)", json.dumps([{"kind": "past", "run_at": "1970-01-01T00:00:00Z"}]))
    database.sql("select * from tenure.enqueue(%s)", json.dumps([{"kind": "past", "delay": -5}]))
    assert database.sql("select state, count(*) from tenure.jobs group by 1 order by 1") == [("pending", 2), ("scheduled", 1)]


def test_the_table_of_schedules_takes_no_name_that_its_jobs_could_not_have(database: Database):
    columns = "kind, timezone, input, queue, priority, max_attempts, overlap, catch_up, catch_up_limit, jitter, every"
    rest = "'UTC', '{}', %s, 50, 3, 'skip', 'one', 1, 0, 5"
    for name, kind, queue in ((LONG, "a", "a"), ("a", LONG, "a"), ("a", "a", LONG)):
        with pytest.raises(psycopg.errors.CheckViolation, match="schedules_names"):
            database.sql(
                f"insert into tenure.schedules (name, {columns}) values (%s, %s, {rest})",
                name,
                kind,
                queue,
            )


async def test_the_client_refuses_long_names_before_anything_is_sent(app, client):
    for asked in (
        lambda: app.enqueue(LONG),
        lambda: app.enqueue("work", queue=LONG),
        lambda: client.pause(LONG),
        lambda: client.set_limit(f"kind:{LONG}", concurrency=1),
        lambda: app.schedules.create(LONG, "work", every="5s"),
    ):
        with pytest.raises(ConfigError, match="201 bytes long, but at most 200 are allowed"):
            await asked()
    with pytest.raises(ConfigError, match="201 bytes long"):
        app.limit(queue=LONG, concurrency=Limit(1))
