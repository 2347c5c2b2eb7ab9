"""A link: statements one at a time, and notifications between and during them, on one connection."""

from __future__ import annotations

import asyncio
import select
from collections.abc import Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
import uvloop

from tenure.chaos.proxy import Proxy
from tenure.model.errors import StoreUnavailable
from tenure.model.wakeup import Wakeup
from tenure.store import lockwaits, queues, workers
from tenure.store.faults import Refused, StatementTimeout
from tenure.store.link import Link, Receiver
from tenure.store.notification_reader import NotificationReader
from tenure.store.query import TEXT, Query
from tenure.store.target import DatabaseTarget
from tests.threaded_proxy import ThreadedProxy
from tests.waiting import PATIENCE, until

OURS = "from pg_stat_activity where datname = current_database() and application_name = 'tenure test'"
LOOPS = [asyncio.new_event_loop, uvloop.new_event_loop]


class Heard(list[str]):
    """What a link received, and how often it said that its connection has changed."""

    changes = 0

    def receiver(self) -> Receiver:
        return Receiver("tenure", self.append, lambda: self.append(""), self._changed)

    def _changed(self) -> None:
        self.changes += 1


@asynccontextmanager
async def listening(target, **options: Any):
    heard = Heard()
    async with Link(target, "test", **options) as link:
        link.listen(heard.receiver())
        await link.open()
        yield link, heard


@pytest.fixture
def notify(dsn):
    with psycopg.connect(dsn, autocommit=True) as connection:
        yield lambda word: connection.execute("select pg_notify('tenure', %s)", [word])


def on(loop: Callable[[], asyncio.AbstractEventLoop], work: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(work)


@pytest.mark.parametrize("loop", LOOPS)
def test_a_link_receives_while_it_is_idle(database_target, notify, loop):
    async def work() -> None:
        async with listening(database_target) as (link, heard):
            assert heard == [""]  # what was said before may have been missed
            notify("one")
            await until(lambda: heard, is_=["", "one"])
            await link.fetch(workers.extend([], 1))
            notify("two")
            await until(lambda: heard, is_=["", "one", "two"])

    on(loop, work())


@pytest.mark.parametrize("loop", LOOPS)
def test_nothing_is_lost_among_many_statements(database_target, dsn, loop):
    async def work() -> None:
        async with (
            listening(database_target) as (link, heard),
            await psycopg.AsyncConnection.connect(dsn, autocommit=True) as other,
        ):

            async def ask() -> None:
                while len(heard) < 500:
                    await link.fetch(workers.extend([], 1))
                    await asyncio.sleep(0)

            asking = [asyncio.create_task(ask()) for _ in range(3)]
            for number in range(500):
                await other.execute("select pg_notify('tenure', %s)", [str(number)])
            await until(lambda: len(heard) == 501)
            await asyncio.gather(*asking)
            assert heard[1:] == [str(number) for number in range(500)]

    on(loop, work())


async def test_what_a_link_says_itself_it_hears(database_target):
    async with listening(database_target) as (link, heard):
        await link.fetch(queues.notify("tenure", [Wakeup.new_jobs("a"), Wakeup.new_jobs("b")]))
        await until(lambda: heard, is_=["", "jobs a", "jobs b"])


async def test_a_connection_that_breaks_while_idle_is_noticed_at_once_and_the_next_statement_does_not_fail(
    database_target, sql, notify
):
    async with listening(database_target) as (link, heard):
        before = heard.changes
        sql(f"select pg_terminate_backend(pid) {OURS}")
        await until(lambda: heard.changes > before)
        await link.fetch(workers.extend([], 1))
        assert (link.sessions, heard) == (2, ["", ""])
        notify("again")
        await until(lambda: heard[2:], is_=["again"])


async def test_a_link_that_listens_later_hears_on_the_connection_it_has(database_target, notify):
    heard = Heard()
    async with Link(database_target, "test") as link:
        await link.fetch(workers.extend([], 1))
        link.listen(heard.receiver())
        await link.open()
        notify("now")
        await until(lambda: heard, is_=["", "now"])
        assert link.sessions == 1


async def test_a_statement_that_takes_too_long_is_canceled_and_the_connection_stays(database_target, dsn, notify):
    async with listening(database_target, within=0.2) as (link, heard):
        with psycopg.connect(dsn) as dba:
            dba.execute("lock table tenure.workers in access exclusive mode")
            with pytest.raises(StatementTimeout, match=r"workers/extend_leases took longer than 0\.2 s") as raised:
                await link.fetch(workers.extend([], 1))
        assert raised.value.statement == "workers/extend_leases"
        await link.fetch(workers.extend([], 1))
        notify("still there")
        await until(lambda: heard, is_=["", "still there"])
        assert link.sessions == 1


async def test_what_is_urgent_does_not_wait_in_line(database_target, dsn, sql):
    order: list[str] = []

    async def ask(name: str, *, urgent: bool) -> None:
        await link.fetch(workers.extend([], 1), urgent=urgent)
        order.append(name)

    async with Link(database_target, "test") as link:
        with psycopg.connect(dsn) as dba:
            dba.execute("lock table tenure.workers in access exclusive mode")
            tasks = [asyncio.create_task(ask("first", urgent=False))]
            await until(lambda: sql(f"select 1 {OURS} and wait_event_type = 'Lock'"))
            tasks += [asyncio.create_task(ask(name, urgent=name == "urgent")) for name in ("second", "urgent")]
            await asyncio.sleep(0)
        await asyncio.gather(*tasks)
    assert order == ["first", "urgent", "second"]


async def test_a_task_that_gives_up_while_in_line_does_not_keep_the_others_waiting(database_target):
    async with Link(database_target, "test") as link:
        await link.open()
        tasks = [asyncio.create_task(link.fetch(workers.extend([], 1))) for _ in range(5)]
        await asyncio.sleep(0)
        tasks[1].cancel()
        tasks[3].cancel()
        done = await asyncio.gather(*tasks, return_exceptions=True)
        assert [isinstance(answer, asyncio.CancelledError) for answer in done] == [False, True, False, True, False]
        await link.fetch(workers.extend([], 1))


async def test_a_refused_statement_costs_no_connection(database_target):
    async with listening(database_target) as (link, _):
        for values in ({"ids": "{}", "ttl": "x", "now": None}, {"ids": "{\ud800}", "ttl": 1, "now": None}):
            with pytest.raises(Refused) as raised:
                await link.fetch(Query("workers/extend_leases", TEXT, values))
            assert raised.value.statement == "workers/extend_leases"
        await link.fetch(workers.extend([], 1))
        assert link.sessions == 1


@pytest.mark.slow
async def test_a_server_that_does_not_answer_is_reported_by_a_ping(database_target, dsn):
    """Half-open: no data arrives, and no error is reported."""
    wire = Proxy(dsn)
    async with wire.open() as way, Link(DatabaseTarget.at(way), "test") as link:
        await link.open()
        wire.speaks.clear()
        with pytest.raises(StoreUnavailable, match="cannot be reached"):
            await link.ping(0.2)
        wire.speaks.set()
        await link.ping(5)
        assert link.sessions == 2


class Refusing:
    """An event loop that cannot watch the socket, as uvloop if it has closed its watcher of that file descriptor."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.remove_reader = loop.remove_reader

    def add_reader(self, *_: object) -> None:
        raise RuntimeError("unable to perform operation on <UVPoll closed=True>; the handler is closed")


async def test_a_link_whose_socket_cannot_be_watched_connects_again(database_target):
    """It was left locked: a worker whose claims used it claimed nothing any more."""
    async with listening(database_target) as (link, _):
        link._reader._loop = Refusing(asyncio.get_running_loop())
        async with asyncio.timeout(30):
            await link.ping(5)
            await link.ping(5)
        assert link.sessions == 2


NOTICE = b"N\x00\x00\x00\x20SNOTICE\0VNOTICE\0C00000\0Mhi\0\0"


@pytest.mark.parametrize("loop", LOOPS)
def test_a_link_that_is_reset_right_after_a_message_connects_again(dsn, loop):
    """The message is read without an error, and uvloop closes its watcher of the socket, because that has one."""

    async def look(proxy: ThreadedProxy) -> None:
        async with listening(DatabaseTarget.at(proxy.wire.dsn)) as (link, _):
            proxy.do(lambda wire: wire.reset(NOTICE))  # blocks this event loop, which then finds both at once
            select.select([link._connection.fileno()], [], [], PATIENCE)
            await asyncio.sleep(0)
            async with asyncio.timeout(PATIENCE):
                with suppress(StoreUnavailable):
                    await link.ping(5)
                await link.ping(5)
            assert link.sessions == 2

    with ThreadedProxy(dsn) as proxy:
        on(loop, look(proxy))


async def test_a_cancellation_that_the_driver_swallows_is_not_lost(database_target, monkeypatch):
    """As `asyncio.wait_for` of Python 3.11 does when the answer arrives in the same moment."""
    run = Link._run

    async def swallowing(link, cursor, query):
        asyncio.current_task().cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(0)
        return await run(link, cursor, query)

    async with Link(database_target, "test") as link:
        await link.open()
        monkeypatch.setattr(Link, "_run", swallowing)
        reading = asyncio.create_task(link.fetch(queues.find_all()))
        with pytest.raises(asyncio.CancelledError):
            await reading
        monkeypatch.undo()
        sessions = link.sessions
        await link.fetch(queues.find_all())
        assert link.sessions == sessions


@pytest.mark.parametrize("loop", LOOPS)
def test_the_holder_of_a_lock_that_a_statement_waits_for_is_reported(database_target, dsn, caplog, monkeypatch, loop):
    """The timer that reports it was set by an earlier statement, which took no time."""
    monkeypatch.setattr(lockwaits, "PATIENCE", 0.3)
    caplog.set_level("DEBUG", "tenure")  # a failure that returns soon is not logged as a warning again

    async def work() -> None:
        async with Link(database_target, "test") as link, await psycopg.AsyncConnection.connect(dsn) as holder:
            for _ in range(2):
                await link.fetch(queues.find_all())
                await holder.execute("lock tenure.queues")
                waiting = asyncio.ensure_future(link.fetch(queues.find_all()))
                wanted = f"queues/find_queues has waited 0.3 s for a lock of session {holder.info.backend_pid}"
                await until(lambda wanted=wanted: wanted in caplog.text)
                assert not waiting.done()
                caplog.clear()
                await holder.rollback()
                await waiting

    on(loop, work())


class OldLibpq:
    """What libpq 15 does not know, the driver refuses."""

    def __init__(self, pgconn: Any) -> None:
        self._pgconn = pgconn

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pgconn, name)

    @property
    def used_gssapi(self) -> bool:
        raise psycopg.NotSupportedError("PQconnectionUsedGSSAPI requires libpq from PostgreSQL 16.0")


async def test_notifications_are_read_with_an_old_libpq_too(dsn, notify):
    heard: list[str] = []
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection:
        await connection.execute("listen tenure")
        old: Any = SimpleNamespace(pgconn=OldLibpq(connection.pgconn), add_notify_handler=connection.add_notify_handler)
        reader = NotificationReader(old, heard.append, lambda: heard.append("broken"))
        reader.watch()
        notify("a")
        await until(lambda: heard, is_=["a"])
        reader.close()
