"""Callers with connections of their own: each as its users write it, all behind one face so that one suite fits them.

The face is synchronous, for Django refuses to be used inside of an event loop; asynchronous callers have a loop of their own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, ExitStack, contextmanager
from typing import Any

import asyncpg
import django
import django.conf
import psycopg
from django.db import connections, transaction
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import AsyncSession, async_scoped_session, async_sessionmaker, create_async_engine
from sqlalchemy.orm import Session, scoped_session, sessionmaker
from sqlalchemy.pool import NullPool

from tenure.store.borrowed import borrow
from tenure.store.query import Query
from tests.transactions.django_orm import skip_on_old_servers

PID = "select pg_backend_pid()"


class Caller:
    """A synchronous one."""

    connection: Any

    def __init__(self, dsn: str) -> None:
        self._closing = ExitStack()
        self.open(dsn)
        self.borrowed = borrow(self.connection)

    def open(self, dsn: str) -> None:
        raise NotImplementedError

    def close(self) -> None:
        self._closing.close()

    def run(self, sql: str) -> list[tuple[Any, ...]]:
        """The caller's own statement."""
        raise NotImplementedError

    def transaction(self) -> AbstractContextManager[Any]:
        raise NotImplementedError

    def savepoint(self) -> AbstractContextManager[Any]:
        raise NotImplementedError

    def fetch(self, query: Query, schema: str = "tenure") -> list[tuple[Any, ...]]:
        return self.borrowed.fetch_sync(query, schema)

    def begin(self) -> None:
        self.borrowed.begin_sync()

    def commit(self) -> None:
        self.borrowed.commit_sync()

    def rollback(self) -> None:
        self.borrowed.rollback_sync()

    def pid(self) -> int:
        return self.run(PID)[0][0]


class AsyncCaller(Caller):
    def __init__(self, dsn: str) -> None:
        self._runner = asyncio.Runner()
        super().__init__(dsn)

    def close(self) -> None:
        super().close()
        self._runner.close()

    def wait(self, awaitable: Awaitable[Any]) -> Any:
        async def awaited() -> Any:
            return await awaitable

        return self._runner.run(awaited())

    @contextmanager
    def held(self, block: AbstractAsyncContextManager[Any]) -> Iterator[Any]:
        entered = self.wait(block.__aenter__())
        try:
            yield entered
        except BaseException as error:
            if not self.wait(block.__aexit__(type(error), error, error.__traceback__)):
                raise
        else:
            self.wait(block.__aexit__(None, None, None))

    def at_the_end(self, close: Callable[[], Awaitable[Any]]) -> None:
        self._closing.callback(lambda: self.wait(close()))

    def fetch(self, query: Query, schema: str = "tenure") -> list[tuple[Any, ...]]:
        return self.wait(self.borrowed.fetch(query, schema))

    def begin(self) -> None:
        self.wait(self.borrowed.begin())

    def commit(self) -> None:
        self.wait(self.borrowed.commit())

    def rollback(self) -> None:
        self.wait(self.borrowed.rollback())


class Psycopg(Caller):
    autocommit = False

    def open(self, dsn: str) -> None:
        self.connection = psycopg.connect(dsn, autocommit=self.autocommit)
        self._closing.callback(self.connection.close)

    def run(self, sql: str) -> list[tuple[Any, ...]]:
        cursor = self.connection.execute(sql)
        return cursor.fetchall() if cursor.description else []

    def transaction(self) -> AbstractContextManager[Any]:
        return self.connection.transaction()

    savepoint = transaction


class PsycopgAutocommit(Psycopg):
    autocommit = True


class PsycopgAsync(AsyncCaller):
    autocommit = False

    def open(self, dsn: str) -> None:
        self.connection = self.wait(psycopg.AsyncConnection.connect(dsn, autocommit=self.autocommit))
        self.at_the_end(self.connection.close)

    def run(self, sql: str) -> list[tuple[Any, ...]]:
        async def run() -> list[tuple[Any, ...]]:
            cursor = await self.connection.execute(sql)
            return await cursor.fetchall() if cursor.description else []

        return self.wait(run())

    def transaction(self) -> AbstractContextManager[Any]:
        return self.held(self.connection.transaction())

    savepoint = transaction


class PsycopgAsyncAutocommit(PsycopgAsync):
    autocommit = True


class Asyncpg(AsyncCaller):
    def open(self, dsn: str) -> None:
        self.connection = self.wait(asyncpg.connect(**for_asyncpg(dsn)))
        self.at_the_end(self.connection.close)

    def run(self, sql: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self.wait(self.connection.fetch(sql))]

    def transaction(self) -> AbstractContextManager[Any]:
        return self.held(self.connection.transaction())

    savepoint = transaction


class AsyncpgPooled(Asyncpg):
    def open(self, dsn: str) -> None:
        async def pool() -> asyncpg.Pool:
            return await asyncpg.create_pool(**for_asyncpg(dsn), min_size=1, max_size=1)

        self.pool = self.wait(pool())
        self.at_the_end(self.pool.close)
        self.connection = self._closing.enter_context(self.held(self.pool.acquire()))


class Alchemy(Caller):
    def open(self, dsn: str) -> None:
        engine = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(dsn), poolclass=NullPool)
        self.connection = self.made_by(engine)
        self._closing.callback(self.connection.close)

    def made_by(self, engine: Any) -> Any:
        raise NotImplementedError

    def run(self, sql: str) -> list[tuple[Any, ...]]:
        result = self.connection.execute(text(sql))
        return [tuple(row) for row in result] if result.returns_rows else []

    def transaction(self) -> AbstractContextManager[Any]:
        return self.connection.begin()

    def savepoint(self) -> AbstractContextManager[Any]:
        return self.connection.begin_nested()


class AlchemySession(Alchemy):
    def made_by(self, engine: Any) -> Any:
        return Session(engine)


class AlchemyScopedSession(Alchemy):
    def made_by(self, engine: Any) -> Any:
        return scoped_session(sessionmaker(engine))


class AlchemyConnection(Alchemy):
    def made_by(self, engine: Any) -> Any:
        return engine.connect()


class AlchemyAsync(AsyncCaller):
    driver = "asyncpg"

    def open(self, dsn: str) -> None:
        given = for_asyncpg(dsn) if self.driver == "asyncpg" else conninfo_to_dict(dsn)
        engine = create_async_engine(f"postgresql+{self.driver}://", connect_args=given, poolclass=NullPool)
        self.connection = self.made_by(engine)
        self.at_the_end(self.connection.close)

    def made_by(self, engine: Any) -> Any:
        raise NotImplementedError

    def run(self, sql: str) -> list[tuple[Any, ...]]:
        result = self.wait(self.connection.execute(text(sql)))
        return [tuple(row) for row in result] if result.returns_rows else []

    def transaction(self) -> AbstractContextManager[Any]:
        return self.held(self.connection.begin())

    def savepoint(self) -> AbstractContextManager[Any]:
        return self.held(self.connection.begin_nested())


class AlchemyAsyncSession(AlchemyAsync):
    def made_by(self, engine: Any) -> Any:
        return AsyncSession(engine)


class AlchemyAsyncSessionPsycopg(AlchemyAsyncSession):
    driver = "psycopg_async"


class AlchemyAsyncScopedSession(AlchemyAsync):
    def made_by(self, engine: Any) -> Any:
        # Each step of a caller here is a task of its own, so the usual scope, the task, would be too small.
        return async_scoped_session(async_sessionmaker(engine), scopefunc=lambda: self)


class AlchemyAsyncConnection(AlchemyAsync):
    def made_by(self, engine: Any) -> Any:
        return self.wait(engine.connect())


class AlchemyAsyncConnectionPsycopg(AlchemyAsyncConnection):
    driver = "psycopg_async"


class Django(Caller):
    def open(self, dsn: str) -> None:
        if not django.conf.settings.configured:
            database = {"ENGINE": "django.db.backends.postgresql", "NAME": "said below"}
            django.conf.settings.configure(DATABASES={"default": database}, LOGGING_CONFIG=None)
            django.setup()
        wrapper = connections["default"]
        skip_on_old_servers(dsn)
        given = conninfo_to_dict(dsn)
        wrapper.settings_dict.update({"NAME": given.pop("dbname"), "OPTIONS": given})
        self._closing.callback(wrapper.close)
        self.connection = self.passed()

    def passed(self) -> Any:
        return connections["default"]

    def run(self, sql: str) -> list[tuple[Any, ...]]:
        with self.connection.cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetchall() if cursor.description else []

    def transaction(self) -> AbstractContextManager[Any]:
        return transaction.atomic()

    savepoint = transaction


class DjangoDefault(Django):
    def passed(self) -> Any:
        return django.db.connection


CALLERS: list[type[Caller]] = [
    Psycopg,
    PsycopgAutocommit,
    PsycopgAsync,
    PsycopgAsyncAutocommit,
    Asyncpg,
    AsyncpgPooled,
    AlchemySession,
    AlchemyScopedSession,
    AlchemyConnection,
    AlchemyAsyncSession,
    AlchemyAsyncSessionPsycopg,
    AlchemyAsyncScopedSession,
    AlchemyAsyncConnection,
    AlchemyAsyncConnectionPsycopg,
    Django,
    DjangoDefault,
]


def for_asyncpg(dsn: str) -> dict[str, Any]:
    given: dict[str, Any] = conninfo_to_dict(dsn)
    return {"database" if name == "dbname" else name: value for name, value in given.items()}
