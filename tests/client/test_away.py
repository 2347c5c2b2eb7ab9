"""While PostgreSQL is away: enqueues and reads are repeated, for as long as the caller wants to wait, and not longer."""

from __future__ import annotations

import asyncio
import os
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import psycopg
import pytest

from tenure import StoreUnavailable, Tenure
from tenure.chaos.proxy import Proxy
from tenure.model.wakeup import Wakeup
from tenure.store.notifier import SHORTEST_GAP
from tenure.store.sync_link import SyncLink
from tests.processes import run_process
from tests.store.sessions import OF_TENURE
from tests.threaded_proxy import ThreadedProxy
from tests.waiting import until
from tests.worker.serving import serving

NOWHERE = "postgresql://nobody@127.0.0.1:1/none"


@pytest.fixture
def proxy(dsn) -> Iterator[ThreadedProxy]:
    with ThreadedProxy(dsn) as proxy:
        yield proxy


def made(dsn: str, **settings) -> Tenure:
    app = Tenure(dsn, **settings)

    @app.job
    def work(n: int = 0) -> int:
        return n

    app.work = work
    return app


# Reading


async def test_reads_go_on_after_their_connections_broke(app, database):
    @app.job
    async def work() -> None: ...

    handle, client = await work.enqueue(), app.client()
    asked = {
        "status": handle.status,
        "progress": handle.progress,
        "report": handle.report,
        "explain": handle.explain,
        "find": lambda: client.find(handle.id),
        "list": client.list,
        "stats": client.stats,
        "queues": client.queues,
        "workers": client.workers,
        "schedules": app.schedules.list,
    }
    for ask in asked.values():
        await ask()
    for name, ask in asked.items():
        database.sql(
            "select pg_terminate_backend(pid, 5000) from pg_stat_activity"
            " where datname = current_database() and application_name like 'tenure client%'"
        )
        assert await ask() or name in ("progress", "workers", "schedules")
    await app.close()


async def test_a_result_that_is_waited_for_comes_although_all_connections_broke(dsn):
    wire = Proxy(dsn)
    async with wire.open() as way:
        asking, app = made(way), made(dsn)
        handle = await asking.work.enqueue(7)
        waiting = asyncio.create_task(handle.result())
        await until(lambda: wire._links)
        for _ in range(3):
            wire.cut()
            await asyncio.sleep(0)
        async with serving(app):
            assert await waiting == 7
        await asking.close()
        await app.close()


async def test_a_read_gives_up_when_its_time_is_over(monkeypatch):
    app = made(NOWHERE, client_timeout_seconds=0.2)
    handle = app.client().handle("018f0000-0000-7000-8000-000000000000")
    for ask in (handle.status, handle.progress, app.client().list, app.client().stats, lambda: handle.result("100ms")):
        with pytest.raises(StoreUnavailable):
            await asyncio.wait_for(ask(), 10)
    await app.close()


@pytest.mark.slow
async def test_a_read_of_a_silent_server_gives_up_when_its_time_is_over(dsn):
    wire = Proxy(dsn)
    async with wire.open() as way:
        app = made(way, client_timeout_seconds=1)
        handle = await app.work.enqueue()
        await handle.status()
        wire.speaks.clear()
        with pytest.raises(StoreUnavailable, match="did not answer within"):
            await asyncio.wait_for(handle.status(), 30)
        wire.speaks.set()
        assert (await handle.status()).state == "pending"
        await app.close()


# Enqueueing


async def test_an_enqueue_gives_up_when_its_time_is_over():
    app = made(NOWHERE, client_timeout_seconds=0.2)
    for enqueue in (
        app.work.enqueue,
        lambda: app.enqueue_many([app.work.call(1)]),
        lambda: app.enqueue("elsewhere"),
    ):
        with pytest.raises(StoreUnavailable, match=r"within 0\.2 s \(.*\).* Whether the job was enqueued is not known"):
            await asyncio.wait_for(enqueue(), 20)
    patient = made(NOWHERE)
    for enqueue in (
        patient.work.using(within="100ms").enqueue,
        lambda: patient.enqueue_many([patient.work.call(1)], within=0.1),
        lambda: patient.enqueue("elsewhere", within=0.1),
    ):
        with pytest.raises(StoreUnavailable, match=r"within 0\.1 s"):
            await asyncio.wait_for(enqueue(), 20)
    await app.close()
    await patient.close()


async def test_after_a_caller_gave_up_its_job_is_not_enqueued_later(dsn, database):
    wire = Proxy(dsn)
    async with wire.open() as way:
        app = made(way)
        await app.work.enqueue(0)
        wire.speaks.clear()
        hasty = asyncio.create_task(app.work.using(within="200ms").enqueue(1))
        with pytest.raises(StoreUnavailable):
            await hasty
        patient = asyncio.create_task(app.work.using(within="30s").enqueue(2))
        await asyncio.sleep(0)
        wire.cut()  # what was on its way is lost
        wire.speaks.set()
        await patient
        await app.close()
    assert database.sql("select (input ->> 'n')::int from tenure.jobs order by 1") == [(0,), (2,)]


async def test_a_caller_with_little_time_does_not_shorten_that_of_others(dsn, database):
    wire = Proxy(dsn)
    async with wire.open() as way:
        app = made(way)
        wire.speaks.clear()
        calls = [app.work.using(within="200ms").enqueue(1), app.work.using(within="30s").enqueue(2)]
        hasty, patient = [asyncio.create_task(call) for call in calls]
        with pytest.raises(StoreUnavailable):
            await hasty
        wire.speaks.set()
        assert (await patient).kind == "work"
        await app.close()


# Without an event loop


def test_an_enqueue_without_a_loop_survives_a_broken_connection(dsn, database):
    app = made(dsn)
    app.work.enqueue_sync(1)
    database.sql(
        "select pg_terminate_backend(pid, 5000) from pg_stat_activity"
        " where datname = current_database() and application_name = 'tenure enqueue'"
    )
    app.work.enqueue_sync(2)
    assert database.sql("select count(*) from tenure.jobs") == [(2,)]
    app.close_sync()


@pytest.mark.parametrize("moment", ["before", "during", "after"])
def test_an_enqueue_without_a_loop_whose_answer_was_lost_makes_one_job(proxy, database, moment):
    app = made(proxy.wire.dsn)
    app.work.enqueue_sync(1)
    state = app._connections.direct._state
    asyncio.run(until(lambda: not state.notifier._pending))
    with state.turn:  # the notification of the first one is sent
        proxy.do(lambda wire: wire.lose_answer("enqueue", moment=moment))
    handle = app.work.enqueue_sync(2)
    assert proxy.wire.cuts == 1
    assert database.sql("select count(*) from tenure.jobs") == [(2,)]
    assert database.sql("select count(*) from tenure.jobs where id = %s", handle.id) == [(1,)]
    assert not handle.existed
    app.close_sync()


def test_an_enqueue_without_a_loop_gives_up_when_its_time_is_over(proxy):
    away = made(NOWHERE, client_timeout_seconds=0.2)
    with pytest.raises(StoreUnavailable, match=r"within 0\.2 s"):
        away.work.enqueue_sync(1)
    silent = made(proxy.wire.dsn)
    silent.work.enqueue_sync(1)
    proxy.do(lambda wire: wire.speaks.clear())
    with pytest.raises(StoreUnavailable, match=r"within 0\.5 s"):
        silent.work.using(within=0.5).enqueue_sync(2)
    away.close_sync()


@contextmanager
def all_at_once(app: Tenure, count: int = 20) -> Iterator[None]:
    """The threads that are started here find a statement on its way, and are let go when all have come."""
    state = app._connections.direct._state
    with state.turn:
        yield
        asyncio.run(until(lambda: len(state.waiting) == count))


def test_threads_that_enqueue_at_once_share_statements_and_one_connection(dsn, database, monkeypatch):
    app = made(dsn)
    app.work.enqueue_sync(0)
    sent, fetch = [], SyncLink.fetch

    def counted(self, query, *, deadline):
        sent.append(query.name)
        return fetch(self, query, deadline=deadline)

    monkeypatch.setattr(SyncLink, "fetch", counted)
    with all_at_once(app):
        threads = [threading.Thread(target=app.work.enqueue_sync, args=[n]) for n in range(20)]
        for thread in threads:
            thread.start()
    for thread in threads:
        thread.join()
    assert database.sql("select count(*) from tenure.jobs") == [(21,)]
    assert [name for name in sent if name.startswith("jobs/enqueue")] == ["jobs/enqueue_jobs"]
    names = f"select count(*) {OF_TENURE}"
    assert database.sql(names) == [(1,)]
    app.close_sync()
    asyncio.run(until(lambda: database.sql(names) == [(0,)]))


class LaterForNotifiers:
    """The lock around the connection: a thread that notifies gets it only after `let_in`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.arrived, self.let_in, self.has_left = threading.Event(), threading.Event(), threading.Event()

    def acquire(self, timeout: float = -1) -> bool:
        if threading.current_thread().name == "tenure notifier":
            self.arrived.set()
            self.let_in.wait(60)
        return self._lock.acquire(timeout=timeout)

    def release(self) -> None:
        self._lock.release()
        if threading.current_thread().name == "tenure notifier":
            self.has_left.set()


def test_a_notification_that_waits_for_the_connection_is_sent_before_it_is_closed(dsn, database, other):
    """Sent afterwards, it would open another connection, which would stay open."""
    app = made(dsn)
    app.work.enqueue_sync(0)
    state = app._connections.direct._state
    asyncio.run(until(lambda: not state.notifier._pending))
    with state.turn:
        state.turn = turn = LaterForNotifiers()
    other.sql("listen tenure")
    state.notifier.notify([Wakeup.new_jobs("mail")])
    assert turn.arrived.wait(60)
    app.close_sync()
    assert [note.payload for note in other.connection.notifies(timeout=60, stop_after=1)] == ["jobs mail"]
    turn.let_in.set()
    assert turn.has_left.wait(60)
    assert state.link._cursor is None


def test_one_refused_job_among_those_of_many_threads_fails_alone(dsn, database, monkeypatch):
    app = made(dsn)
    poisoned = app.work.using(priority="high")
    poisoned._maker._fields = replace(poisoned._maker._fields, priority=7000)
    results: list[object] = []

    def enqueue(job, n):
        try:
            results.append(job.enqueue_sync(n))
        except Exception as error:
            results.append(error)

    with all_at_once(app):
        threads = [threading.Thread(target=enqueue, args=[poisoned if n == 7 else app.work, n]) for n in range(20)]
        for thread in threads:
            thread.start()
    for thread in threads:
        thread.join()
    assert [type(result).__name__ for result in results if isinstance(result, Exception)] == ["InvalidPayload"]
    assert database.sql("select count(*) from tenure.jobs") == [(19,)]
    app.close_sync()


def test_workers_are_notified_of_what_code_without_a_loop_enqueues(dsn, database, other):
    app = made(dsn)
    other.sql("listen tenure")
    began = time.monotonic()
    for n in range(50):
        app.work.enqueue_sync(n)
    heard = [note.payload for note in other.connection.notifies(timeout=60, stop_after=1)]
    assert set(heard) == {"jobs default"}
    app.work.using(delay="1h", queue="mail").enqueue_sync()
    app.close_sync()  # sends what is left
    left = list[str]()
    for note in other.connection.notifies(timeout=60):
        left.append(note.payload)
        if note.payload == "due":
            break
    assert set(left) <= {"jobs default", "due"}
    assert "due" in left
    most = 3 + (time.monotonic() - began) / SHORTEST_GAP  # the first, the last two, and one for each gap
    assert len(heard) + len(left) <= most  # together where there are many


def test_a_process_that_only_enqueues_keeps_one_connection(dsn, database):
    app = made(dsn)
    app.work.enqueue_sync(1)
    app.enqueue_sync("elsewhere")
    app.enqueue_many_sync([app.work.call(n) for n in range(5)])
    names = f"select application_name {OF_TENURE}"
    assert database.sql(names) == [("tenure enqueue",)]
    app.close_sync()


@pytest.mark.parametrize("used", ["before", "never"])
def test_code_that_runs_at_exit_still_enqueues(dsn, database, tmp_path, used):
    """Registered before anything of Tenure's, hence run after all of it."""
    script = tmp_path / "leaving.py"
    script.write_text(
        textwrap.dedent(f"""
        import atexit, sys, warnings
        warnings.simplefilter("error")
        from tenure import StoreUnavailable, Tenure
        app = Tenure({dsn!r})

        @app.job
        def work(n: int) -> None: ...

        @atexit.register
        def leave():
            handle = work.enqueue_sync(2)
            try:
                print("found", handle.status_sync().state)
            except StoreUnavailable as error:
                print(error)

        if {used == "before"}:
            work.enqueue_sync(1).status_sync()
        """)
    )
    done = run_process([sys.executable, str(script)], timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert "found pending" in done.stdout or "only enqueue_sync() still works" in done.stdout
    assert [n for (n,) in database.sql("select (input ->> 'n')::int from tenure.jobs order by 1")] == [1, 2][used == "never" :]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_fork_while_another_thread_enqueues_leaves_both_working(dsn, database):
    app = made(dsn)
    app.work.enqueue_sync(0)
    state = app._connections.direct._state
    state.turn.acquire()  # as a thread does that is in the middle of a statement
    child = os.fork()
    if child == 0:
        code = 1
        try:
            app.work.enqueue_sync(1)
            app.close_sync()
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    state.turn.release()
    app.work.enqueue_sync(2)
    assert database.sql("select (input ->> 'n')::int from tenure.jobs order by 1") == [(0,), (1,), (2,)]
    app.close_sync()


# Opening and closing without a loop


def test_code_without_a_loop_migrates_checks_and_closes(bare_dsn):
    app = Tenure(bare_dsn)
    assert app.migrate_sync()
    app.check_sync()
    assert app.enqueue_sync("work").status_sync().state == "pending"
    app.close_sync()
    names = f"select count(*) {OF_TENURE}"
    with psycopg.connect(bare_dsn, autocommit=True) as connection:
        asyncio.run(until(lambda: connection.execute(names).fetchall() == [(0,)]))
        assert app.enqueue_sync("work").status_sync().state == "pending"  # it opens again
        app.close_sync()


def test_in_a_loop_of_enqueues_listeners_are_notified_during_it_and_after_its_last_job(dsn, database, other):
    app = made(dsn)
    other.sql("listen tenure")
    seen = []
    for n in range(60):
        seen += [note.payload for note in other.connection.notifies(timeout=0)]
        app.work.enqueue_sync(n)
    assert set(seen) == {"jobs default"}
    visible = 0
    while visible < 60:  # nothing else is enqueued: the notification is about the last job
        assert list(other.connection.notifies(timeout=60, stop_after=1)), f"no notification after {visible} jobs"
        [(visible,)] = other.sql("select count(*) from tenure.jobs")
    app.close_sync()
