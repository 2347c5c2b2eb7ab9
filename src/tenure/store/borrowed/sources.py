"""Where connections come from: session factories, engines and pools of the caller's. What is opened here is closed here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Source:
    is_async: bool
    open: Callable[[], Any]
    """Gives a new connection or session; to be awaited where `is_async`."""
    close: Callable[[Any], Any]
    """Returns it to where it came from; to be awaited where `is_async`."""


def _alchemy_sessions(maker: Any) -> Source:
    return Source(is_async=False, open=maker, close=lambda session: session.close())


def _alchemy_async_sessions(maker: Any) -> Source:
    async def open_session() -> Any:
        return maker()

    return Source(is_async=True, open=open_session, close=lambda session: session.close())


def _alchemy_engine(engine: Any) -> Source:
    return Source(is_async=False, open=engine.connect, close=lambda connection: connection.close())


def _alchemy_async_engine(engine: Any) -> Source:
    async def connect() -> Any:
        return await engine.connect()

    return Source(is_async=True, open=connect, close=lambda connection: connection.close())


def _psycopg_pool(is_async: bool) -> Callable[[Any], Source]:
    return lambda pool: Source(is_async=is_async, open=pool.getconn, close=pool.putconn)


def _asyncpg_pool(pool: Any) -> Source:
    async def acquire() -> Any:
        return await pool.acquire()

    return Source(is_async=True, open=acquire, close=pool.release)


# By package and name, not by class: to have the class, its package would have to be imported.
_KNOWN: dict[tuple[str, str], Callable[[Any], Source]] = {
    ("sqlalchemy", "sessionmaker"): _alchemy_sessions,
    ("sqlalchemy", "async_sessionmaker"): _alchemy_async_sessions,
    ("sqlalchemy", "Engine"): _alchemy_engine,
    ("sqlalchemy", "AsyncEngine"): _alchemy_async_engine,
    ("psycopg_pool", "ConnectionPool"): _psycopg_pool(is_async=False),
    ("psycopg_pool", "AsyncConnectionPool"): _psycopg_pool(is_async=True),
    ("asyncpg", "Pool"): _asyncpg_pool,
}

SOURCES = (
    "a SQLAlchemy sessionmaker, async_sessionmaker, Engine or AsyncEngine, "
    "a psycopg ConnectionPool or AsyncConnectionPool, or an asyncpg Pool"
)


def source_of(given: object) -> Source | None:
    """None for what is not a source: perhaps it is a connection."""
    for kind in type(given).__mro__:
        if adapter := _KNOWN.get((kind.__module__.partition(".")[0], kind.__name__)):
            return adapter(given)
    return None
