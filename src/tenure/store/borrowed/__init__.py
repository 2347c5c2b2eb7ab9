"""Connections that belong to the caller: our statements inside the caller's own transaction.

`borrow(connection)` returns an adapter that runs a `Query` there. Promises of this folder:

- a statement joins the transaction it finds; only `commit` and `rollback` end one;
- after a failed statement, the transaction stays as the driver leaves it: to roll it back is up to the caller;
- errors of all drivers are translated into those that a `Link` raises;
- no driver is imported that the caller does not use.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from tenure.model.errors import ConfigError
from tenure.store.borrowed.asyncpg_adapter import AsyncpgConnection
from tenure.store.borrowed.base import Borrowed
from tenure.store.borrowed.django_adapter import DjangoConnection
from tenure.store.borrowed.psycopg2_adapter import Psycopg2Connection
from tenure.store.borrowed.psycopg_adapter import PsycopgAsyncConnection, PsycopgConnection
from tenure.store.borrowed.sources import SOURCES, Source, source_of
from tenure.store.borrowed.sqlalchemy_adapter import AlchemyAsync, AlchemyConnection, AlchemySession

__all__ = ["SOURCES", "Borrowed", "Source", "borrow", "source_of"]

# By package and name, not by class: to have the class, its package would have to be imported.
_KNOWN: dict[tuple[str, str], Callable[[Any], Borrowed]] = {
    ("psycopg", "Connection"): PsycopgConnection,
    ("psycopg", "AsyncConnection"): PsycopgAsyncConnection,
    ("psycopg2", "connection"): Psycopg2Connection,
    ("asyncpg", "Connection"): AsyncpgConnection,
    ("asyncpg", "PoolConnectionProxy"): AsyncpgConnection,
    ("sqlalchemy", "Session"): AlchemySession,
    ("sqlalchemy", "scoped_session"): lambda scoped: AlchemySession(scoped()),
    ("sqlalchemy", "Connection"): AlchemyConnection,
    ("sqlalchemy", "AsyncSession"): lambda session: AlchemyAsync(session, AlchemySession),
    ("sqlalchemy", "async_scoped_session"): lambda scoped: AlchemyAsync(scoped(), AlchemySession),
    ("sqlalchemy", "AsyncConnection"): lambda connection: AlchemyAsync(connection, AlchemyConnection),
    ("django", "BaseDatabaseWrapper"): DjangoConnection,
    ("django", "ConnectionProxy"): DjangoConnection,
}

_UNDERSTOOD = (
    "a psycopg Connection or AsyncConnection, "
    "a psycopg2 connection, "
    "an asyncpg Connection, "
    "a SQLAlchemy Session, scoped_session, AsyncSession, async_scoped_session, Connection or AsyncConnection, "
    "or Django's django.db.connection or connections[alias]"
)


def borrow(connection: object) -> Borrowed:
    kind: Any = type(connection)
    return _adapter(kind)(connection)


@lru_cache(maxsize=64)
def _adapter(kind: Any) -> Callable[[Any], Borrowed]:
    for base in kind.__mro__:
        if adapter := _KNOWN.get((base.__module__.partition(".")[0], base.__name__)):
            return adapter
    raise ConfigError(f"{kind.__module__}.{kind.__qualname__} is not a connection that Tenure can use: pass {_UNDERSTOOD}")
