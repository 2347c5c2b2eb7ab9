"""What is particular to one driver."""

from __future__ import annotations

import asyncio
import json
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime

import psycopg
import pytest
from django.db import connections
from psycopg.rows import dict_row
from sqlalchemy import create_engine, event
from sqlalchemy.exc import IntegrityError, PendingRollbackError
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from tenure.model.errors import ConfigError, StoreUnavailable
from tenure.store import history, jobs
from tenure.store.borrowed import borrow
from tenure.store.borrowed.positional import positional
from tenure.store.faults import Refused
from tests.store.borrowed import callers
from tests.store.borrowed.test_conformance import UndoError, enqueue, insert, lead_a_life, lose
from tests.store.test_statements import FILES, name_of

EVER = "00000000-0000-0000-0000-000000000000"
ROWLESS = history.declare_retentions({})


class Base(DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "orders"
    __table_args__ = ({"schema": "public"},)
    name: Mapped[str] = mapped_column(primary_key=True)


@pytest.mark.parametrize(
    "kind", [callers.PsycopgAutocommit, callers.PsycopgAsyncAutocommit, callers.Asyncpg, callers.AsyncpgPooled, callers.Django]
)
def test_outside_of_a_transaction_it_commits_at_once(opened, kinds, kind):
    opened(kind).fetch(enqueue("ship"))
    assert kinds() == ["ship"]


@pytest.mark.parametrize("kind", [callers.Psycopg, callers.PsycopgAsync])
@pytest.mark.parametrize("setting", ["row_factory", "cursor_factory"])
def test_psycopg_rows_and_cursors_of_the_callers_choice_do_no_harm(opened, kinds, kind, setting):
    caller = opened(kind)
    raw = psycopg.AsyncRawCursor if kind is callers.PsycopgAsync else psycopg.RawCursor
    setattr(caller.connection, setting, {"row_factory": dict_row, "cursor_factory": raw}[setting])
    with caller.transaction():
        caller.fetch(enqueue("ship"))
        assert caller.fetch(jobs.count_states(EVER)) == [("pending", 1)]
    assert kinds() == ["ship"]


@pytest.mark.parametrize("kind", [callers.Psycopg, callers.PsycopgAsync])
def test_psycopg_ends_a_transaction_that_began_by_itself(opened, orders, kinds, kind):
    caller = opened(kind)
    insert(caller, "mine")
    caller.begin()
    caller.fetch(enqueue("ship"))
    caller.commit()
    assert (orders(), kinds()) == (["mine"], ["ship"])
    insert(caller, "other")
    caller.rollback()
    assert orders() == ["mine"]


@pytest.mark.parametrize("kind", [callers.Psycopg, callers.PsycopgAsync])
def test_psycopg_keeps_the_isolation_level_of_the_connection(opened, kind):
    caller = opened(kind)
    serializable = psycopg.IsolationLevel.SERIALIZABLE
    if caller.borrowed.is_async:
        caller.wait(caller.connection.set_autocommit(True))
        caller.wait(caller.connection.set_isolation_level(serializable))
    else:
        caller.connection.autocommit = True
        caller.connection.isolation_level = serializable
    caller.begin()
    assert caller.run("show transaction_isolation") == [("serializable",)]
    caller.rollback()


@pytest.mark.parametrize("kind", [callers.Psycopg, callers.PsycopgAsync])
def test_psycopg_cannot_end_a_block_of_the_callers_and_says_so(opened, orders, kinds, kind):
    caller = opened(kind)
    with pytest.raises(UndoError), caller.transaction():
        insert(caller, "mine")
        caller.begin()
        caller.fetch(enqueue("ship"))
        with pytest.raises(ConfigError, match=r"outside of its own transaction\(\) block"):
            caller.commit()
        with pytest.raises(ConfigError):
            caller.rollback()
        raise UndoError
    assert (orders(), kinds()) == ([], [])


def in_a_pipeline(caller: callers.Caller) -> AbstractContextManager[object]:
    pipeline = caller.connection.pipeline()
    return caller.held(pipeline) if isinstance(caller, callers.AsyncCaller) else pipeline


@pytest.mark.parametrize("kind", [callers.Psycopg, callers.PsycopgAsync])
def test_psycopg_in_a_pipeline_gives_rows_and_refusals_at_once(opened, kinds, kind):
    caller = opened(kind)
    with in_a_pipeline(caller):
        with caller.transaction():
            caller.fetch(enqueue("ship"))
            assert caller.fetch(jobs.count_states(EVER)) == [("pending", 1)]
            assert caller.fetch(ROWLESS) == []
        with pytest.raises(Refused), caller.transaction():
            caller.fetch(enqueue(""))
    assert kinds() == ["ship"]


@pytest.mark.parametrize("kind", [callers.Psycopg, callers.PsycopgAsync])
def test_psycopg_in_a_pipeline_cannot_be_ended_and_says_so_before_anything_is_done(opened, kind):
    caller = opened(kind)
    with in_a_pipeline(caller), pytest.raises(ConfigError, match=r"outside of its pipeline\(\) block"):
        caller.begin()


@pytest.mark.parametrize("kind", [callers.Asyncpg, callers.AsyncpgPooled])
def test_asyncpg_cannot_end_a_transaction_of_the_callers_and_says_so_before_anything_is_done(opened, kinds, kind):
    caller = opened(kind)
    with caller.transaction():
        caller.fetch(enqueue("ship"))
        for refused in (caller.begin, caller.commit, caller.rollback):
            with pytest.raises(ConfigError, match=r"outside of its own transaction\(\) block"):
                refused()
    assert kinds() == ["ship"]


def test_asyncpg_with_a_codec_of_the_callers_for_json_is_sent_our_json_once(opened, sql):
    caller = opened(callers.Asyncpg)
    for name in ("json", "jsonb"):
        caller.wait(
            caller.connection.set_type_codec(name, encoder=json.dumps, decoder=json.loads, schema="pg_catalog", format="text")
        )
    lead_a_life(caller, datetime.now(UTC))
    assert sql("select output from tenure.all_jobs") == [({"n": 1},)]


@pytest.mark.parametrize("kind", [callers.Asyncpg, callers.AsyncpgPooled, callers.AlchemyAsyncConnection])
def test_asyncpg_that_noticed_the_loss_before_us_is_reported_as_lost(opened, sql, kind):
    caller = opened(kind)
    caller.begin()
    caller.fetch(enqueue("ship"))
    gone = asyncio.Event()
    below = caller.connection
    if kind is callers.AlchemyAsyncConnection:
        below = caller.wait(below.get_raw_connection()).driver_connection
    below.add_termination_listener(lambda _: gone.set())
    lose(caller, sql)
    caller.wait(gone.wait())
    with pytest.raises(StoreUnavailable):
        caller.fetch(enqueue("ship"))
    with pytest.raises((StoreUnavailable, PendingRollbackError)):
        caller.commit()
    caller.rollback()


def test_asyncpg_whose_connection_went_back_to_its_pool_says_so(opened):
    caller = opened(callers.AsyncpgPooled)
    caller.wait(caller.pool.release(caller.connection))
    with pytest.raises(StoreUnavailable, match="released back to the pool"):
        caller.fetch(enqueue("ship"))


def test_asyncpg_understands_every_statement_of_ours(opened):
    caller = opened(callers.Asyncpg)
    for path in FILES:
        spelled = positional(name_of(path), "tenure")
        prepared = caller.wait(caller.connection.prepare(spelled.sql))
        assert len(prepared.get_parameters()) == len(spelled.names), name_of(path)


def test_a_statement_is_rewritten_once_for_each_schema():
    assert positional("jobs/enqueue_jobs", "tenure") is positional("jobs/enqueue_jobs", "tenure")
    assert '"Other".' in positional("jobs/enqueue_jobs", "Other").sql


@pytest.mark.parametrize("kind", [callers.AlchemySession, callers.AlchemyScopedSession])
def test_sqlalchemy_objects_still_pending_are_committed_with_the_job(opened, orders, kinds, kind):
    caller = opened(kind)
    caller.begin()
    caller.connection.add(Order(name="mine"))
    caller.fetch(enqueue("ship"))
    caller.commit()
    assert (orders(), kinds()) == (["mine"], ["ship"])


@pytest.mark.parametrize("kind", [callers.AlchemyAsyncSession, callers.AlchemyAsyncSessionPsycopg])
def test_sqlalchemy_reports_the_callers_own_row_in_its_own_words(opened, orders, kinds, kind):
    caller = opened(kind)
    with caller.transaction():
        caller.connection.add(Order(name="mine"))
    caller.begin()
    caller.fetch(enqueue("ship"))
    caller.connection.add(Order(name="mine"))
    with pytest.raises(IntegrityError):
        caller.commit()
    caller.rollback()
    assert (orders(), kinds()) == (["mine"], [])


def test_sqlalchemy_a_file_missing_while_the_callers_rows_are_written_is_not_an_outage(opened):
    caller = opened(callers.AlchemySession)

    @event.listens_for(caller.connection, "before_flush")
    def read_a_file(*_):
        raise FileNotFoundError("no such template")

    caller.begin()
    caller.connection.add(Order(name="mine"))
    with pytest.raises(FileNotFoundError):
        caller.commit()
    caller.rollback()


def test_sqlalchemy_runs_inside_of_run_sync(opened, kinds):
    caller = opened(callers.AlchemyAsyncSession)

    def work(session: Session) -> None:
        borrow(session).fetch_sync(enqueue("ship"), "tenure")

    with caller.transaction():
        caller.wait(caller.connection.run_sync(work))
    assert kinds() == ["ship"]


@pytest.mark.parametrize("kind", [callers.AlchemyConnection, callers.AlchemyAsyncConnectionPsycopg])
def test_sqlalchemy_streaming_of_the_callers_does_no_harm(opened, kinds, kind):
    caller = opened(kind)
    with caller.transaction():
        if caller.borrowed.is_async:
            caller.wait(caller.connection.execution_options(stream_results=True))
        else:
            caller.connection.execution_options(stream_results=True)
        caller.fetch(enqueue("ship"))
        assert caller.fetch(ROWLESS) == []
    assert kinds() == ["ship"]


def test_sqlalchemy_on_another_database_is_refused_with_the_way_out():
    with Session(create_engine("sqlite://")) as session, pytest.raises(ConfigError, match=r"postgresql\+psycopg"):
        borrow(session).fetch_sync(enqueue("ship"), "tenure")


def test_django_inside_of_its_own_atomic_block_is_refused_with_the_way_out(opened):
    caller = opened(callers.Django)
    with caller.transaction(), pytest.raises(ConfigError, match="remove the outer atomic"):
        caller.begin()


@contextmanager
def on_sqlite():
    connections.databases["lite"] = {
        **connections.databases["default"],
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": ":memory:",
    }
    yield connections["lite"]
    connections["lite"].close()
    del connections["lite"], connections.databases["lite"]


def test_django_on_another_database_is_refused_with_the_way_out(opened):
    opened(callers.Django)
    with on_sqlite() as connection, pytest.raises(ConfigError, match="sqlite"):
        borrow(connection)


def test_djangos_cache_is_not_a_connection(opened):
    from django.core.cache import cache

    opened(callers.Django)
    with pytest.raises(ConfigError, match=r"connections\[alias\]"):
        borrow(cache)
