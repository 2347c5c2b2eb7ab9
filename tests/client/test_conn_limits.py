"""In a transaction of the caller's: one statement, one notification, and plain words where it or its database is wrong."""

from __future__ import annotations

import asyncio
import gc
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from uuid import uuid4

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tenure import ConfigError, JobNotFound, SchemaMismatch, StoreUnavailable, Tenure, TransactionAborted
from tenure.store.borrowed import identity
from tenure.store.borrowed.psycopg_adapter import PsycopgConnection
from tests.client.test_conn import CALLERS, app, caller, enqueue_in, enqueue_many_in, opened, shop
from tests.store.borrowed import callers
from tests.store.borrowed.callers import AsyncCaller
from tests.store.locks import meanwhile

__all__ = ["app", "caller", "opened", "shop"]


class UndoError(Exception):
    pass


def payloads(other, seconds=0.5):
    return sorted(note.payload for note in other.connection.notifies(timeout=seconds))


# Notifications


def test_workers_are_notified_once_per_transaction_and_queue_when_it_commits(app, caller, shop, other):
    other.sql("listen tenure")
    with caller.transaction():
        for n in range(5):
            enqueue_in(app, caller, f"{n}")
            enqueue_in(app, caller, f"{n} later", delay="1h")
        enqueue_in(app, caller, "elsewhere", queue="far")
        enqueue_many_in(app, caller, "ada", "bo")
        assert payloads(other, 0.2) == []
    assert payloads(other) == ["due", "jobs far", "jobs mail"]


def test_a_transaction_that_is_rolled_back_sends_no_notification(app, opened, other):
    caller = opened(callers.Psycopg)
    other.sql("listen tenure")
    with suppress(UndoError), caller.transaction():
        enqueue_in(app, caller, "never")
        raise UndoError
    assert payloads(other) == []


@pytest.mark.parametrize("kind", [callers.Psycopg, callers.AlchemyAsyncSession])
def test_notifications_can_be_turned_off_for_a_call_and_by_a_setting(app, dsn, opened, other, kind):
    caller = opened(kind)
    other.sql("listen tenure")
    with caller.transaction():
        enqueue_in(app, caller, "quiet", notify=False)
    app.configure(notify_in_transactions=False)
    with caller.transaction():
        enqueue_in(app, caller, "quiet")
        enqueue_many_in(app, caller, "quiet")
    assert payloads(other) == []
    with caller.transaction():
        enqueue_in(app, caller, "loud", notify=True)
    assert payloads(other) == ["jobs mail"]


@pytest.mark.parametrize("kind", [callers.Psycopg, callers.AlchemyAsyncSession])
def test_cancellations_and_completed_chains_notify_only_if_the_setting_allows_it(app, opened, other, kind):
    caller = opened(kind)
    calls = [app.ship.call(name) for name in ("canceled", "completed", "loud")]
    canceled, completed, loud = (app.ship.handle(call.id) for call in calls)

    def change(method, *args):
        if isinstance(caller, AsyncCaller):
            return caller.wait(method(*args, conn=caller.connection))
        return getattr(method.__self__, f"{method.__name__}_sync")(*args, conn=caller.connection)

    other.sql("listen tenure")
    app.configure(notify_in_transactions=False)
    with caller.transaction():
        change(app.gather, calls)
    with caller.transaction():
        assert change(canceled.cancel)
        change(app.chains.complete, completed, "done")
    assert payloads(other) == []
    app.configure(notify_in_transactions=True)
    with caller.transaction():
        assert change(loud.cancel)
    assert payloads(other) != []


@pytest.mark.parametrize("kind", CALLERS, ids=lambda kind: kind.__name__)
def test_an_enqueue_is_one_statement(app, opened, kind, monkeypatch):
    caller = opened(kind)
    with caller.transaction():
        enqueue_in(app, caller, "the first one asks which database this is")
    sent = []
    name = "fetch" if isinstance(caller, AsyncCaller) else "fetch_sync"
    fetch = getattr(type(caller.borrowed), name)

    def counted(self, query, schema):
        sent.append(query.name)
        return fetch(self, query, schema)

    monkeypatch.setattr(type(caller.borrowed), name, counted)
    with caller.transaction():
        enqueue_in(app, caller, "ada")
    assert sent == ["jobs/enqueue_one_borrowed"]


# Transactions that take nothing more


def test_a_transaction_that_was_aborted_is_reported_as_such(app, caller, shop):
    with suppress(Exception), caller.transaction():
        with suppress(Exception):
            caller.run("insert into public.orders values (1 / 0)")
        with pytest.raises(TransactionAborted, match="aborted by an earlier error"):
            enqueue_in(app, caller, "ada")
        raise UndoError
    assert shop() == ([], [])


def test_djangos_own_refusal_after_a_swallowed_error_is_reported_as_such(app, opened, database):
    from django.db import IntegrityError, transaction

    caller = opened(callers.Django)
    database.sql("create table public.unique_orders (id int primary key)")
    try:
        with suppress(Exception), transaction.atomic(using=caller.connection.alias):
            caller.run("insert into public.unique_orders values (1)")
            try:
                with transaction.atomic(using=caller.connection.alias, savepoint=False):
                    caller.run("insert into public.unique_orders values (1)")
            except IntegrityError:
                pass
            with pytest.raises(TransactionAborted) as aborted:
                enqueue_in(app, caller, "ada")
            assert "unique_orders" not in str(aborted.value)
            raise UndoError
    finally:
        database.sql("drop table public.unique_orders")


def test_a_session_of_sqlalchemy_whose_flush_failed_is_reported_as_such(app, opened, database):
    from sqlalchemy import Column, Integer
    from sqlalchemy.exc import IntegrityError
    from sqlalchemy.orm import DeclarativeBase

    class Base(DeclarativeBase):
        pass

    class Row(Base):
        __tablename__ = "flushed_orders"
        __table_args__ = {"schema": "public"}  # noqa: RUF012
        id = Column(Integer, primary_key=True)

    database.sql("create table public.flushed_orders (id int primary key); insert into public.flushed_orders values (1)")
    caller = opened(callers.AlchemySession)
    try:
        with suppress(Exception), caller.transaction():
            caller.connection.add(Row(id=1))
            with pytest.raises(IntegrityError):
                caller.connection.flush()
            with pytest.raises(TransactionAborted):
                enqueue_in(app, caller, "ada")
            raise UndoError
    finally:
        database.sql("drop table public.flushed_orders")


def test_a_savepoint_that_was_rolled_back_leaves_the_rest_usable(app, caller, shop):
    with caller.transaction():
        with suppress(Exception), caller.savepoint():
            caller.run("insert into public.orders values (1 / 0)")
        enqueue_in(app, caller, "ada")
    assert shop() == ([], ["ada"])


# Databases


@pytest.mark.slow
@pytest.mark.parametrize("kind", CALLERS, ids=lambda kind: kind.__name__)
def test_a_connection_to_another_database_is_refused(app, opened, fresh_dsn, kind):
    elsewhere = kind(fresh_dsn)
    try:
        for _ in range(2):
            with suppress(UndoError), elsewhere.transaction():
                with pytest.raises(ConfigError, match="leads to another database than the app's own"):
                    enqueue_in(app, elsewhere, "ada")
                raise UndoError
    finally:
        elsewhere.close()
    with psycopg.connect(fresh_dsn) as connection:
        assert connection.execute("select count(*) from tenure.jobs").fetchall() == [(0,)]
    caller = opened(kind)
    with caller.transaction():
        enqueue_in(app, caller, "ada")


def test_a_database_that_was_recreated_under_its_name_is_recognised(server_dsn, template):
    """As between two runs of a test suite in one process."""
    dsn = make_conninfo(server_dsn, dbname=f"anew_{uuid4().hex[:12]}")
    app = Tenure(dsn)
    for _ in range(2):
        with psycopg.connect(server_dsn, autocommit=True) as admin:
            admin.execute(f"create database {conninfo_to_dict(dsn)['dbname']} template {template}")
            with psycopg.connect(dsn) as connection:
                app.enqueue_sync("work", conn=connection)
                assert connection.execute("select kind, state from tenure.jobs").fetchall() == [("work", "pending")]
            admin.execute(f"drop database {conninfo_to_dict(dsn)['dbname']} with (force)")


def test_a_connection_to_a_database_without_the_schema_is_reported_as_before(app, bare_dsn, opened):
    elsewhere = callers.Psycopg(bare_dsn)
    try:
        with pytest.raises(SchemaMismatch), elsewhere.transaction():
            enqueue_in(app, elsewhere, "ada")
    finally:
        elsewhere.close()


def test_each_database_is_asked_once(app, dsn, database, monkeypatch):
    asked, fetch = [], PsycopgConnection.fetch_sync

    def counted(self, query, schema):
        asked.append(query.name)
        return fetch(self, query, schema)

    monkeypatch.setattr(PsycopgConnection, "fetch_sync", counted)
    monkeypatch.setattr(identity, "_by_address", {})
    for _ in range(3):
        with psycopg.connect(dsn) as connection:
            app.ship.using(conn=connection).enqueue_sync("ada")
    assert asked.count("reports/identify_database") == 1


def test_where_the_apps_own_database_cannot_be_asked_nothing_is_refused(dsn, database, monkeypatch):
    monkeypatch.setattr(identity, "PATIENCE", 0.1)
    app = Tenure("postgresql://nobody@127.0.0.1:1/none")

    @app.job
    def work() -> None: ...

    with psycopg.connect(dsn) as connection:
        work.using(conn=connection).enqueue_sync()
    assert database.sql("select count(*) from tenure.jobs") == [(1,)]


def test_a_role_that_may_only_enqueue_can_be_asked_which_database_it_is_in(fresh_dsn):
    from tenure.store.migrator import roles_sql

    assert "'database_id'" in roles_sql("tenure")


# Connections that are none of ours


def test_an_engine_on_another_database_is_refused_with_all_that_work(app):
    from sqlalchemy import create_engine

    with create_engine("sqlite://").connect() as connection, pytest.raises(ConfigError) as refused:
        app.ship.using(conn=connection).enqueue_sync("ada")
    for driver in ("postgresql+psycopg,", "postgresql+psycopg2", "postgresql+asyncpg"):
        assert driver in str(refused.value)


def test_a_connection_of_a_kind_that_is_not_known_is_refused_with_all_that_are(app):
    import sqlite3

    with pytest.raises(ConfigError) as refused:
        app.ship.using(conn=sqlite3.connect(":memory:")).enqueue_sync("ada")
    for known in (
        "psycopg Connection",
        "psycopg2 connection",
        "asyncpg Connection",
        "SQLAlchemy Session",
        "django.db.connection",
    ):
        assert known in str(refused.value)
    gc.collect()


async def test_djangos_connection_in_a_coroutine_is_refused_with_the_way_out(app, dsn):
    with ThreadPoolExecutor(1) as thread:  # Django's connections are closed by the thread that opened them
        caller = await asyncio.wrap_future(thread.submit(callers.Django, dsn))
        with pytest.raises(ConfigError, match="sync_to_async"):
            await app.ship.using(conn=caller.connection).enqueue("ada")
        await asyncio.wrap_future(thread.submit(caller.close))


def test_a_connection_of_psycopg2_works_as_the_others_do(app, dsn, shop, fresh_dsn):
    psycopg2 = pytest.importorskip("psycopg2")
    connection = psycopg2.connect(dsn)
    with connection:
        app.ship.using(conn=connection).enqueue_sync("ada")
        assert shop() == ([], [])
    assert shop() == ([], ["ada"])
    with suppress(UndoError), connection:
        app.ship.using(conn=connection).enqueue_sync("never")
        raise UndoError
    assert shop() == ([], ["ada"])
    with suppress(UndoError), connection:
        with suppress(psycopg2.Error), connection.cursor() as cursor:
            cursor.execute("select 1 / 0")
        with pytest.raises(TransactionAborted):
            app.ship.using(conn=connection).enqueue_sync("never")
        raise UndoError
    connection.close()
    with pytest.raises(StoreUnavailable):
        app.ship.using(conn=connection).enqueue_sync("never")
    elsewhere = psycopg2.connect(fresh_dsn)
    with pytest.raises(ConfigError, match="another database"):
        app.ship.using(conn=elsewhere).enqueue_sync("never")
    elsewhere.close()


# Canceling


def cancel(caller, handle, **more) -> bool:
    if isinstance(caller, AsyncCaller):
        return caller.wait(handle.cancel("no need", conn=caller.connection, **more))
    return handle.cancel_sync("no need", conn=caller.connection, **more)


def test_a_cancellation_is_part_of_the_transaction(app, caller, database, other):
    with caller.transaction():
        handle = enqueue_in(app, caller, "ada")
    claim = database.claim(database.worker(queues=["mail"]), queues=["mail"], kinds=["ship"])
    assert claim.ids == [str(handle.id)]
    other.sql("listen tenure")
    with suppress(UndoError), caller.transaction():
        assert cancel(caller, handle)
        raise UndoError
    assert states(database) == ["running"]
    with caller.transaction():
        assert cancel(caller, handle, by="ann")
        assert not cancel(caller, handle)
        assert states(database) == ["running"]
    assert database.sql("select state, error from tenure.all_jobs") == [("canceled", "canceled by ann: no need")]
    assert payloads(other) == [f"lost {handle.id}"]


def test_a_job_that_does_not_exist_cannot_be_canceled_in_a_transaction_either(app, caller, database):
    handle = app.client().handle("018f0000-0000-7000-8000-000000000000")
    with suppress(UndoError), caller.transaction():
        with pytest.raises(JobNotFound):
            cancel(caller, handle)
        raise UndoError


def test_a_cancellation_waits_for_a_job_that_another_transaction_holds(app, opened, database, other):
    caller = opened(callers.Psycopg)
    with caller.transaction():
        handle = enqueue_in(app, caller, "ada")
    with other.connection.transaction():
        other.sql("select from tenure.jobs for update")

        def work() -> bool:
            with caller.transaction():
                return cancel(caller, handle)

        canceled = meanwhile(work)
    assert canceled() is True
    assert states(database) == ["canceled"]


def states(database) -> list[str]:
    return [state for (state,) in database.sql("select state from tenure.all_jobs order by id")]
