"""Jobs that have taken their position and are not written yet."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.store.database import Database


@contextmanager
def paused_inserts(database: Database) -> Iterator[None]:
    """Inserts of jobs with meta wait while a session holds the advisory lock 1."""
    database.sql(
        "create function wait() returns trigger language plpgsql as $$ begin perform pg_advisory_xact_lock(1); return new; end $$"
    )
    database.sql(
        "create trigger wait before insert on tenure.jobs for each row when (new.meta is not null) execute function wait()"
    )
    database.sql("select pg_advisory_lock(1)")
    try:
        yield
    finally:
        database.sql("select pg_advisory_unlock_all()")
        database.sql("drop function wait cascade")
