"""Clients in short-lived loops, in threads and in forked processes."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import warnings

import pytest
from psycopg.conninfo import make_conninfo

from tenure import SchemaMismatch, Tenure
from tests.store.sessions import OF_TENURE
from tests.waiting import until


def test_a_loop_that_ends_without_closing_leaves_no_warning_and_loses_no_wake_up(dsn, database, other):
    app = Tenure(dsn)

    @app.job
    async def work() -> None: ...

    other.sql("listen tenure")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            asyncio.run(work.enqueue())
        gc.collect()
    heard = [note.payload for note in other.connection.notifies(timeout=60, stop_after=3)]
    assert heard == ["jobs default"] * 3


def test_loops_that_are_gone_are_forgotten_with_their_connections(dsn, database):
    app = Tenure(dsn)

    @app.job
    async def work() -> None: ...

    for _ in range(5):
        asyncio.run(work.enqueue())
    gc.collect()
    assert len(app._connections.sessions) <= 1
    names = f"select count(*) {OF_TENURE}"
    asyncio.run(until(lambda: database.sql(names)[0][0] <= 3))


def test_sync_code_enqueues_from_any_thread(dsn, database):
    app = Tenure(dsn)

    @app.job
    def work(n: int) -> int:
        return n

    threads = [threading.Thread(target=lambda n=n: [work.enqueue_sync(n) for _ in range(5)]) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    handle = work.enqueue_sync(100)
    assert handle.status_sync().state == "pending"
    assert len(app.enqueue_many_sync([work.call(1), work.call(2)])) == 2
    assert database.sql("select count(*) from tenure.jobs") == [(43,)]
    app._portal.close()
    app._portal.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_process_enqueues_on_connections_of_its_own(dsn, database):
    app = Tenure(dsn)

    @app.job
    def work(n: int) -> None: ...

    work.enqueue_sync(1)
    child = os.fork()
    if child == 0:
        try:
            work.enqueue_sync(2)
            os._exit(0)
        except BaseException:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    work.enqueue_sync(3)
    assert sorted(row[0] for row in database.sql("select (input ->> 'n')::int from tenure.jobs")) == [1, 2, 3]
    app._portal.close()


async def test_after_a_change_of_the_database_the_next_calls_go_there_and_the_former_session_is_closed(dsn, database):
    """As in tests, where a framework replaces the database while the process runs."""
    app = Tenure(make_conninfo(dsn, dbname="postgres"))

    @app.job
    async def work() -> None: ...

    with pytest.raises(SchemaMismatch):
        await work.enqueue()
    former = app._connections.sessions[asyncio.get_running_loop()]
    app.configure(dsn=dsn)
    await work.enqueue()
    await asyncio.to_thread(work.enqueue_sync)
    assert database.sql("select count(*) from tenure.jobs") == [(2,)]
    await until(former._keeper.done)
    await app.close()
    assert app._connections.sessions == {}


def test_code_without_an_event_loop_follows_the_settings_too(dsn, database):
    app = Tenure(make_conninfo(dsn, dbname="postgres"))

    @app.job
    def work() -> None: ...

    with pytest.raises(SchemaMismatch):
        work.enqueue_sync()
    app.configure(dsn=dsn)
    assert work.enqueue_sync().status_sync().state == "pending"
    app.close_sync()
