"""Whether LISTEN delivers: found out after each connect, never guessed from a server that is away or busy."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress

import psycopg
import pytest

from tenure.chaos.pooler import PGBOUNCER, Pooler
from tenure.model.wakeup import Wakeup
from tenure.store import listener, workers
from tenure.store.link import Link
from tenure.store.listener import Listener
from tenure.store.target import DatabaseTarget
from tenure.store.wakeups import Wakeups
from tests.waiting import until

HERE = "from pg_stat_activity where datname = current_database()"


@pytest.fixture(autouse=True)
def quickly(monkeypatch):
    monkeypatch.setattr(listener, "ECHO", 0.1)
    monkeypatch.setattr(listener, "TEST_AGAIN", 0.05)


class Sender:
    """Sends, or fails if the test asks for it."""

    def __init__(self, dsn):
        self._dsn, self.works, self.arrives, self.sent = dsn, True, True, 0

    async def send(self, wakeup):
        self.sent += 1
        if self.works and self.arrives:
            async with await psycopg.AsyncConnection.connect(self._dsn, autocommit=True) as connection:
                await connection.execute("select pg_notify('tenure', %s)", [wakeup.payload()])
        return self.works


@asynccontextmanager
async def listening(target, sender):
    received: list[Wakeup] = []
    async with Link(target, "listen") as link:
        ears = Listener(link, received.append, sender.send, alone=False)
        ears.start()
        task = asyncio.create_task(ears.task.run())
        try:
            yield ears, received
        finally:
            task.cancel()
            await asyncio.wait([task])


async def test_a_test_that_could_not_be_sent_proves_nothing(database_target, dsn):
    sender = Sender(dsn)
    sender.works = False
    async with listening(database_target, sender) as (ears, _):
        await until(lambda: sender.sent > 5)
        assert not ears.not_delivering
        sender.works = True
        await until(lambda: ears._tested, is_=1)
        assert not ears.not_delivering


async def test_what_does_not_arrive_twice_is_reported_and_tested_again(database_target, dsn, caplog, monkeypatch):
    monkeypatch.setattr(listener, "SILENCE", 0.05)
    sender = Sender(dsn)
    sender.arrives = False
    async with listening(database_target, sender) as (ears, _):
        await until(lambda: ears.not_delivering)
        assert sender.sent >= 2
        await until(lambda: sender.sent > 5)
        assert caplog.text.count("LISTEN delivers nothing") == 1
        sender.arrives = True
        await until(lambda: not ears.not_delivering)


async def test_a_listening_connection_that_is_busy_still_delivers(database_target, dsn, sql):
    """While a statement waits for a lock, the server delivers nothing on its connection."""
    received: list[Wakeup] = []
    claim, settle = Link(database_target, "claim"), Link(database_target, "settle")
    wakeups = Wakeups(database_target, received.append, listen_on=claim, notify_on=settle)
    with psycopg.connect(dsn) as dba:
        dba.execute("lock table tenure.workers in access exclusive mode")
        wakeups.start()
        busy = asyncio.create_task(_busy(claim))
        await until(lambda: sql(f"select 1 {HERE} and application_name = 'tenure claim' and wait_event_type = 'Lock'"))
        await until(lambda: sql(f"select 1 {HERE} and application_name = 'tenure settle'"))
        await asyncio.wait([busy], timeout=5 * listener.ECHO)
        assert not wakeups.not_delivering
    await busy
    await until(lambda: wakeups._listener._tested, is_=1)
    assert not wakeups.not_delivering
    await wakeups.stop()


async def _busy(link):
    await link.fetch(workers.extend([], 1))


async def test_listeners_in_one_process_do_not_receive_each_others_tests(database_target, dsn):
    sender = Sender(dsn)
    async with listening(database_target, sender) as (first, received), listening(database_target, sender) as (second, other):
        await until(lambda: (first._tested, second._tested), is_=(1, 1))
        assert (received, other) == ([Wakeup.missed()], [Wakeup.missed()])


@pytest.fixture
async def unnamed_pooler(dsn, tmp_path):
    """A pooler on any port, which takes our settings and forgets them."""

    def start(mode):
        pooler._settings.write_text(
            pooler._settings.read_text()
            .replace("pool_mode = transaction", f"pool_mode = {mode}")
            .replace("extra_float_digits", "extra_float_digits,options")
        )
        pooler.start()
        return pooler

    pooler = Pooler(dsn, tmp_path)
    yield start
    pooler.kill()


needs_pgbouncer = pytest.mark.skipif(PGBOUNCER is None, reason="pgbouncer is not installed (apt-get install pgbouncer)")


@needs_pgbouncer
async def test_a_pooler_of_sessions_that_is_not_in_the_settings_delivers(unnamed_pooler):
    """Tested by another connection: on its own one it may be handed what it said itself, also where nothing else is delivered."""
    pooler = unnamed_pooler("session")
    await until(lambda: pooler.answers)
    wakeups = Wakeups(DatabaseTarget(dsn=pooler.dsn, pooled=False), lambda _: None)
    wakeups.start()
    await until(lambda: wakeups._listener._tested)
    assert (wakeups.not_delivering, wakeups.link.is_direct) == (False, False)
    await wakeups.stop()


@needs_pgbouncer
async def test_a_pooler_of_transactions_that_is_not_in_the_settings_is_reported_with_the_way_out(unnamed_pooler, caplog):
    pooler = unnamed_pooler("transaction")
    await until(lambda: pooler.answers)
    wakeups = Wakeups(DatabaseTarget(dsn=pooler.dsn, pooled=False), lambda _: None)
    wakeups.start()
    await until(lambda: "set pooled = true" in caplog.text or wakeups.not_delivering)
    assert not wakeups._listener._tested
    await wakeups.stop()


async def test_tasks_that_the_loop_has_canceled_are_not_canceled_again(database_target):
    """At the end of a loop all its tasks are canceled, and then the session closes. psycopg logs a warning if it is canceled a
    second time while it cancels a statement."""
    wakeups = Wakeups(database_target, lambda _: None)
    wakeups.start()
    tasks = list(wakeups._tasks.values())
    for task in tasks:
        task.cancel()
    await wakeups.stop()
    assert [(task.cancelling(), task.cancelled()) for task in tasks] == [(1, True), (1, True)]


async def test_a_stop_ends_tasks_of_which_a_statement_is_just_being_canceled_by_its_time_limit(database_target):
    """Such a task is being canceled, but not by the stop, and it continues."""
    reached, go = asyncio.Event(), asyncio.Event()

    async def cancel_in_the_server():
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            reached.set()
            await go.wait()
            raise

    async def turn():
        with suppress(TimeoutError):
            async with asyncio.timeout(0.01):
                await cancel_in_the_server()
        return listener.SILENCE

    wakeups = Wakeups(database_target, lambda _: None)
    wakeups._listener.task._turn = turn
    wakeups.start()
    await reached.wait()
    stop = asyncio.create_task(wakeups.stop())
    await asyncio.wait([stop], timeout=0.01)
    go.set()
    await until(stop.done)
