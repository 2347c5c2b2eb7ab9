"""A connection of our own that reconnects by itself.

A link runs one statement at a time, each in its own transaction. When the connection breaks, the call that noticed raises
`StoreUnavailable` and the next one connects again: callers decide whether their statement may be repeated. A link may also
LISTEN. Then it receives notifications between and during statements, and a connection that breaks while idle is noticed at once.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, NoReturn, Self, TypeVar

import psycopg
from psycopg import AsyncConnection
from psycopg.pq import TransactionStatus

from tenure.model.errors import SchemaMismatch
from tenure.outages import CONNECT, failures
from tenure.periodic import cancellations
from tenure.store import faults
from tenure.store.columns import column_names, has_rows
from tenure.store.connecting import KEEPALIVE, PLANNER, WIDE_PLANNER, connect, server_of
from tenure.store.lockwaits import LockWatch
from tenure.store.notification_reader import NotificationReader
from tenure.store.prepared import PreparedStatements, send_rollback
from tenure.store.priority_lock import PriorityLock
from tenure.store.query import Fetch, Query, Rows, T
from tenure.store.statements import quoted, statement
from tenure.store.target import DatabaseTarget

__all__ = ["KEEPALIVE", "Link", "Receiver", "connect"]

U = TypeVar("U")

PIPELINES = psycopg.Pipeline.is_supported()
"""Needs libpq 14 or newer. Without it, each statement is a round trip."""

KEEPS = {"conflict", "lock", "canceled", "disk_full", "memory", "trigger"}
"""Causes after which the connection can still be used."""

# The previous value is kept for transactions that must be durable (lock_limits).
_RELAXED = """select set_config('tenure_link.synchronous_commit', current_setting('synchronous_commit'), false);
              select set_config('synchronous_commit', 'off', false)"""


@dataclass(frozen=True, slots=True)
class Receiver:
    """What a link that listens calls: `received(payload)` for each notification, `missed()` when some may have been missed,
    and `changed()` when a connection was made or lost."""

    channel: str
    received: Callable[[str], None]
    missed: Callable[[], None]
    changed: Callable[[], None]


class LinkTurn:
    """One use of a link, which serves one task at a time. A class, because each statement would pay for a generator."""

    __slots__ = ("_canceled_before", "_link", "_urgent", "_what")

    def __init__(self, link: Link, what: str, urgent: bool) -> None:
        self._link = link
        self._what = what
        self._urgent = urgent
        self._canceled_before = 0

    async def __aenter__(self) -> None:
        await self._link._lock.acquire(urgent=self._urgent)  # noqa: SLF001 - its own module
        self._canceled_before, self._link._asked = cancellations(), self._what  # noqa: SLF001

    async def __aexit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        await self._link._end_turn(error, self._canceled_before)  # noqa: SLF001


class Link:
    def __init__(
        self,
        database: DatabaseTarget,
        role: str,
        *,
        hot: bool = False,
        wide: bool = False,
        durable: bool = True,
        within: float | None = None,
        lock_timeout: float | None = None,
    ) -> None:
        """`hot` fixes the plans for statements that go by index only, `wide` plans each statement for its values, for those
        that read many rows; `durable=False` lets commits be lost in a crash of the server, for writes that may as well not
        have happened. `within`: seconds after which any statement is canceled; `lock_timeout`: seconds for which one waits
        for a lock (not behind a pooler)."""
        self.database = database
        self.is_direct: bool | None = None
        """Whether the server is connected without a pooler. Known once a link that listens is connected."""
        self.sessions = 0
        """The number of connections made."""
        self.last_answer = 0.0
        self._role = role
        self._settings = dict(PLANNER if hot else WIDE_PLANNER if wide else {})
        if lock_timeout is not None:
            self._settings["lock_timeout"] = f"{lock_timeout * 1000:.0f}ms"
        self._durable = durable or database.pooled
        self._within = within
        self._server = server_of(database.dsn)
        self._connection: AsyncConnection[Any] | None = None
        self._cursor: psycopg.AsyncCursor[Any] | None = None
        self._prepared: PreparedStatements | None = None
        """None: behind a pooler, or not connected yet."""
        self._lock = PriorityLock()
        self._asked = ""
        self._lock_watch = LockWatch(database)
        self._receiver: Receiver | None = None
        self._reader: NotificationReader | None = None
        self._is_broken = False

    @property
    def reconnects(self) -> int:
        """The number of connections made after the first."""
        return max(0, self.sessions - 1)

    async def fetch(self, query: Query[T], *, within: float | None = None, urgent: bool = False) -> list[T]:
        """Runs the statement in its own transaction and returns all rows. An urgent one goes before others that wait."""
        async with self._locked(query.name, urgent=urgent):
            cursor = await self._ready()
            limit = within or self._within
            if limit is None:
                return await self._run(cursor, query)
            async with self._limited(limit):
                return await self._run(cursor, query)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Fetch]:
        """Several statements in one transaction. Yields a function that runs one."""
        async with self._locked("transaction"):
            cursor = await self._ready()

            async def run(query: Query[T]) -> list[T]:
                return await self._run(cursor, query)

            async with cursor.connection.transaction():
                yield run

    async def fetch_both(self, first: Query[T], second: Query[U]) -> tuple[list[T], list[U]]:
        """Runs two statements in one transaction and in one round trip: the second does not wait until this process has read the
        answer to the first. It sees what was committed before it began."""
        async with self._locked(second.name):
            cursor = await self._ready()
            self._lock_watch.begin(second.name, cursor.connection)
            try:
                return await self._run_both(cursor.connection, first, second)
            finally:
                self._lock_watch.end()

    async def open(self) -> int:
        """Connects if necessary. Returns the number of the connection."""
        async with self._locked(CONNECT):
            await self._ready()
        return self.sessions

    async def ping(self, within: float) -> None:
        """Raises `StoreUnavailable` unless the server answers in that time."""
        async with self._locked(CONNECT):
            cursor = await self._ready()
            async with asyncio.timeout(within):
                await cursor.execute("select 1", prepare=False)
            self.last_answer = time.monotonic()

    def listen(self, receiver: Receiver) -> None:
        """LISTENs from the next statement on, and after each reconnect. A link has one receiver."""
        self._receiver = receiver

    def unlisten(self) -> None:
        """Does not LISTEN on later connections. The current one is to be closed."""
        self._receiver = None

    async def close(self) -> None:
        await self._lock.acquire()
        try:
            await self._drop()
        finally:
            self._lock.release()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _run(self, cursor: psycopg.AsyncCursor[Any], query: Query[T]) -> list[T]:
        self._asked = query.name
        self._lock_watch.begin(query.name, cursor.connection)
        try:
            found = await self._answer(cursor, query)
        finally:
            self._lock_watch.end()
        self.last_answer = time.monotonic()
        failures.succeeded(self._server, query.name)
        return found

    async def _answer(self, cursor: psycopg.AsyncCursor[Any], query: Query[T]) -> list[T]:
        if self._prepared is not None:
            return await cursor.connection.wait(self._prepared.run(query))
        await cursor.execute(statement(query.name, self.database.schema), query.values)
        rows: Rows = await cursor.fetchall() if has_rows(cursor) else []
        return query.decode(rows, lambda: column_names(cursor))

    async def _run_both(self, connection: AsyncConnection[Any], first: Query[T], second: Query[U]) -> tuple[list[T], list[U]]:
        one, other = connection.cursor(binary=True), connection.cursor(binary=True)
        refused: psycopg.Error | None = None
        try:
            async with connection.pipeline() if PIPELINES else nullcontext():
                try:
                    # Named, because behind a pooler the database's default may be another one.
                    await connection.execute("begin isolation level read committed", prepare=False)
                    await one.execute(statement(first.name, self.database.schema), first.values)
                    await other.execute(statement(second.name, self.database.schema), second.values)
                    await connection.execute("commit", prepare=False)
                except psycopg.Error as error:  # raised below: the driver logs a warning for each error that leaves this block
                    refused = error
            if refused is not None:
                raise refused
        except psycopg.Error as error:
            if connection.info.transaction_status is TransactionStatus.INERROR:
                await connection.wait(send_rollback(connection))
            raise (refused or error) from None
        self.last_answer = time.monotonic()
        failures.succeeded(self._server, second.name)
        return (
            first.decode(await one.fetchall(), lambda: column_names(one)),
            second.decode(await other.fetchall(), lambda: column_names(other)),
        )

    def _locked(self, what: str, *, urgent: bool = False) -> LinkTurn:
        return LinkTurn(self, what, urgent)

    async def _end_turn(self, error: BaseException | None, canceled_before: int) -> None:
        """Translates the driver's errors, and drops a connection whose state is not known."""
        try:
            if isinstance(error, psycopg.Error | OSError | UnicodeError):
                await self._fail(error, canceled_before)
            if error is None:
                # In Python 3.11 the driver's `wait_for` swallows a cancellation that arrives together with the answer.
                if cancellations() > canceled_before:
                    raise asyncio.CancelledError
            elif not isinstance(error, faults.StatementTimeout):
                await self._lose()
        finally:
            try:
                if self._reader is not None:
                    self._reader.watch()
            finally:
                self._lock.release()

    async def _fail(self, error: psycopg.Error | OSError | UnicodeError, canceled_before: int) -> NoReturn:
        translated = faults.translated(
            error,
            schema=self.database.schema,
            statement=self._asked,
            server=self._server,
            dsn=self.database.dsn,
            connection=self._connection,
        )
        keeps = isinstance(translated, faults.Refused | SchemaMismatch) or getattr(translated, "cause", "") in KEEPS
        if not (keeps and self._is_idle):
            await self._lose()
        # This task was canceled meanwhile, and the driver raises only the statement's error.
        if cancellations() > canceled_before:
            await self._lose()
            raise asyncio.CancelledError from error
        raise (translated or error) from error

    @asynccontextmanager
    async def _limited(self, within: float) -> AsyncIterator[None]:
        """The driver cancels the statement in the server. It may have been committed nevertheless, as after a lost answer."""
        try:
            async with asyncio.timeout(within) as limit:
                yield
        except TimeoutError as error:
            if not limit.expired():
                raise
            if not self._is_idle:
                await self._lose()
            text = (
                f"{self._asked} took longer than {within:g} s and was canceled; if it waits for a lock, the log names the holder"
            )
            raise faults.StatementTimeout(text, cause="slow", statement=self._asked, server=self._server) from error

    @property
    def _is_idle(self) -> bool:
        return self._connection is not None and self._connection.info.transaction_status is TransactionStatus.IDLE

    async def _ready(self) -> psycopg.AsyncCursor[Any]:
        if self._reader is not None:
            self._reader.pause()
        if self._is_broken:
            await self._drop()
        cursor = self._cursor or await self._open()
        if self._receiver is not None and self._reader is None:
            await self._listen(cursor.connection, self._receiver)
        return cursor

    async def _open(self) -> psycopg.AsyncCursor[Any]:
        connection = self._connection = await connect(self.database, self._role, self._settings)
        if not self._durable:
            await connection.execute(_RELAXED, prepare=False)
        failures.succeeded(self._server, CONNECT)
        self.sessions += 1
        self._prepared = None if self.database.pooled else PreparedStatements(connection, self.database.schema)
        self._cursor = connection.cursor(binary=True)
        return self._cursor

    async def _listen(self, connection: AsyncConnection[Any], receiver: Receiver) -> None:
        await connection.execute(f"listen {quoted(receiver.channel)}", prepare=False)
        # A pooler reports a process id of its own.
        [(pid,)] = await (await connection.execute("select pg_backend_pid()", prepare=False)).fetchall()
        self.is_direct = pid == connection.info.backend_pid
        self._reader = NotificationReader(connection, receiver.received, self._on_broken)
        receiver.changed()
        receiver.missed()

    def _on_broken(self) -> None:
        self._is_broken = True
        if self._receiver is not None:
            self._receiver.changed()

    async def _lose(self) -> None:
        """Drops a connection that cannot be used any more. A receiver is notified, so that it can reconnect soon."""
        listened = self._reader is not None
        await self._drop()
        if listened and self._receiver is not None:
            self._receiver.changed()

    async def _drop(self) -> None:
        connection, self._connection, self._cursor, self._is_broken = self._connection, None, None, False
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()
        if connection is not None:
            await connection.close()
