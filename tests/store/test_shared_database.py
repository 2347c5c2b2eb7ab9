"""The database that many tests share is for each of them as a new one."""

from __future__ import annotations

import psycopg
import pytest

from tests.store.clean import EMPTY, SharedDatabase


@pytest.fixture
def shared(fresh_dsn):
    shared = SharedDatabase(fresh_dsn)
    yield shared
    shared.close()


def test_no_notification_of_the_test_before_is_received(shared, fresh_dsn):
    connection = shared.connection_to(fresh_dsn)
    if connection is None:
        pytest.skip("before PostgreSQL 15 each test has a connection of its own")
    connection.execute("listen tenure")
    with psycopg.connect(fresh_dsn, autocommit=True) as other:
        other.execute("notify tenure, 'of the test before'")
    connection.execute("select 1")  # receives it, and the driver keeps it
    shared.empty()
    connection.execute("listen tenure")
    connection.execute("notify tenure, 'of this test'")
    assert [note.payload for note in connection.notifies(timeout=60, stop_after=1)] == ["of this test"]


def test_no_trigger_or_setting_of_the_test_before_is_left(shared, fresh_dsn):
    with psycopg.connect(fresh_dsn, autocommit=True) as other:
        other.execute("create function public.refuse() returns trigger language plpgsql as 'begin raise exception ''no''; end'")
        for table in ("jobs", "history"):
            other.execute(f"create trigger refuse before insert on tenure.{table} for each row execute function public.refuse()")
        other.execute(f"alter database {other.info.dbname} set synchronous_commit = 'remote_write'")
    shared.empty()
    with psycopg.connect(fresh_dsn, autocommit=True) as other:
        assert other.execute("select count(*) from pg_trigger where not tgisinternal").fetchone() == (0,)
        assert other.execute("show synchronous_commit").fetchone() != ("remote_write",)


def test_every_table_is_emptied(fresh_dsn):
    """A table that is missing there would pass its rows on to later tests."""
    tables = "select relname from pg_class where relnamespace = 'tenure'::regnamespace and relkind = 'r' and not relispartition"
    with psycopg.connect(fresh_dsn, autocommit=True) as other:
        names = [name for (name,) in other.execute(tables)]
    kept = {"migrations", "limit_changes"}
    assert [name for name in names if f"'{name}'" not in EMPTY and f"tenure.{name};" not in EMPTY and name not in kept] == []
