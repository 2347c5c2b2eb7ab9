"""Connections and sessions of a handler's own, each as its users write it; all give what to pass, and how to insert by it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import asyncpg
import psycopg
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, create_async_engine
from sqlalchemy.orm import Session
from sqlalchemy.pool import NullPool

from tests.store.borrowed.callers import for_asyncpg
from tests.transactions.handlers import INSERT

NAMED = text("insert into public.payments (name) values (:name)")


@asynccontextmanager
async def psycopg_async(dsn: str) -> AsyncIterator[tuple[Any, Callable[[str], Any]]]:
    async with await psycopg.AsyncConnection.connect(dsn) as connection:
        yield connection, lambda name: connection.execute(INSERT, [name])


@asynccontextmanager
async def psycopg_async_autocommit(dsn: str) -> AsyncIterator[tuple[Any, Callable[[str], Any]]]:
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection:
        yield connection, lambda name: connection.execute(INSERT, [name])


@asynccontextmanager
async def asyncpg_connection(dsn: str) -> AsyncIterator[tuple[Any, Callable[[str], Any]]]:
    connection = await asyncpg.connect(**for_asyncpg(dsn))
    try:
        yield connection, lambda name: connection.execute("insert into public.payments (name) values ($1)", name)
    finally:
        await connection.close()


@asynccontextmanager
async def alchemy_async_session(dsn: str) -> AsyncIterator[tuple[Any, Callable[[str], Any]]]:
    engine = create_async_engine("postgresql+asyncpg://", connect_args=for_asyncpg(dsn), poolclass=NullPool)
    async with AsyncSession(engine) as session:
        yield session, lambda name: session.execute(NAMED, {"name": name})


@asynccontextmanager
async def alchemy_async_session_psycopg(dsn: str) -> AsyncIterator[tuple[Any, Callable[[str], Any]]]:
    engine = create_async_engine("postgresql+psycopg_async://", connect_args=conninfo_to_dict(dsn), poolclass=NullPool)
    async with AsyncSession(engine) as session:
        yield session, lambda name: session.execute(NAMED, {"name": name})


@asynccontextmanager
async def alchemy_async_connection(dsn: str) -> AsyncIterator[tuple[Any, Callable[[str], Any]]]:
    engine = create_async_engine("postgresql+asyncpg://", connect_args=for_asyncpg(dsn), poolclass=NullPool)
    connection: AsyncConnection
    async with engine.connect() as connection:
        yield connection, lambda name: connection.execute(NAMED, {"name": name})


@contextmanager
def psycopg_sync(dsn: str) -> Iterator[tuple[Any, Callable[[str], Any]]]:
    with psycopg.connect(dsn) as connection:
        yield connection, lambda name: connection.execute(INSERT, [name])


@contextmanager
def alchemy_session(dsn: str) -> Iterator[tuple[Any, Callable[[str], Any]]]:
    with Session(_engine(dsn)) as session:
        yield session, lambda name: session.execute(NAMED, {"name": name})


@contextmanager
def alchemy_connection(dsn: str) -> Iterator[tuple[Any, Callable[[str], Any]]]:
    with _engine(dsn).connect() as connection:
        yield connection, lambda name: connection.execute(NAMED, {"name": name})


def _engine(dsn: str) -> Any:
    return create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(dsn), poolclass=NullPool)


ASYNC = {
    made.__name__: made
    for made in (
        psycopg_async,
        psycopg_async_autocommit,
        asyncpg_connection,
        alchemy_async_session,
        alchemy_async_session_psycopg,
        alchemy_async_connection,
    )
}
SYNC = {made.__name__: made for made in (psycopg_sync, alchemy_session, alchemy_connection)}
