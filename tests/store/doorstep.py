"""Jobs that have taken their position and are not written yet."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.store.desk import Desk


@contextmanager
def doorstep(desk: Desk) -> Iterator[None]:
    """Whatever enters meanwhile with meta waits there while somebody holds the advisory lock 1."""
    desk.sql(
        "create function wait() returns trigger language plpgsql as $$ begin perform pg_advisory_xact_lock(1); return new; end $$"
    )
    desk.sql("create trigger wait before insert on tenure.jobs for each row when (new.meta is not null) execute function wait()")
    desk.sql("select pg_advisory_lock(1)")
    try:
        yield
    finally:
        desk.sql("select pg_advisory_unlock_all()")
        desk.sql("drop function wait cascade")
