"""Opens connections. Each sets what our statements rely on, and so overrides the role, the database and the DSN.

Not set on purpose: `search_path` (our statements name their schema, and triggers of the user may need theirs),
`synchronous_commit` (the administrator decides how durable a commit is) and `idle_in_transaction_session_timeout` (it protects
the server, and our transactions are short).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar

import psycopg
from psycopg import AsyncConnection, AsyncCursor, Connection, Cursor, IsolationLevel
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import Format

from tenure.model.errors import ConfigError
from tenure.store import faults
from tenure.store.statements import quoted
from tenure.store.target import DatabaseTarget

C = TypeVar("C", bound=Connection[Any])

# A server that vanished without a word is noticed within seconds, not hours.
KEEPALIVE: dict[str, Any] = {
    "connect_timeout": 5,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
}

# Our statements are written for these plans. Statistics of a queue are always stale, and a plan that was
# cheap on an empty table costs seconds on a full one.
PLANNER = {
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_bitmapscan": "off",
    "enable_indexscan": "on",
    "enable_indexonlyscan": "on",
    "enable_nestloop": "on",
    "plan_cache_mode": "force_generic_plan",
    "jit": "off",
}

# For statements that read many rows: a plan for the given values. Without them PostgreSQL expects few rows of any period, finds
# that plan cheap, and keeps it: it sorts on disk what another plan sums up in memory, and takes three times as long.
WIDE_PLANNER = {"plan_cache_mode": "force_custom_plan"}

RELIED_ON = {
    # A claim under a limit, and a repeated enqueue, must see what was committed after their transaction began.
    "default_transaction_isolation": "read committed",
    "default_transaction_read_only": "off",
    "standard_conforming_strings": "on",
}
PINNED = {
    **RELIED_ON,
    "datestyle": "ISO, MDY",
    "intervalstyle": "postgres",
    "timezone": "UTC",
    # A duty that is canceled each time is never done. Statements that must not take long are canceled by us.
    "statement_timeout": "0",
    "lock_timeout": "0",
    # A connection that waits for notifications is idle for hours.
    "idle_session_timeout": "0",
}
TRANSACTION_TIMEOUT = 170000
"""The first server version with `transaction_timeout`. An older one would reject it as a startup option."""


class _BinaryAsyncCursor(AsyncCursor[Any]):
    """Receives binary values. As text, times depend on settings of the session, which a pooler leaves to the role."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.format = Format.BINARY


class _BinaryCursor(Cursor[Any]):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.format = Format.BINARY


async def connect(database: DatabaseTarget, role: str, settings: Mapping[str, str] | None = None) -> AsyncConnection[Any]:
    """A connection in autocommit mode. Behind a pooler, session settings would leak to other clients: see `check_settings`."""
    connection = await AsyncConnection.connect(database.dsn, **_arguments(database, role, settings))
    if database.pooled:
        connection.cursor_factory = _BinaryAsyncCursor
    try:
        # For transactions with several statements. This also works behind a pooler.
        await connection.set_isolation_level(IsolationLevel.READ_COMMITTED)
        if _has_transaction_timeout(database, connection):
            await connection.execute("set transaction_timeout = 0", prepare=False)
    except BaseException:
        await connection.close()
        raise
    return connection


def connect_sync(kind: type[C], database: DatabaseTarget, role: str, within: int) -> C:
    """The same for code without an event loop: a connection of this class, made within this many seconds for each host."""
    arguments = {**_arguments(database, role), "connect_timeout": within}
    connection = kind.connect(database.dsn, **arguments)
    if database.pooled:
        connection.cursor_factory = _BinaryCursor
    try:
        connection.isolation_level = IsolationLevel.READ_COMMITTED
        if _has_transaction_timeout(database, connection):
            connection.execute("set transaction_timeout = 0", prepare=False)
    except BaseException:
        connection.close()
        raise
    return connection


def _arguments(database: DatabaseTarget, role: str, settings: Mapping[str, str] | None = None) -> dict[str, Any]:
    return {
        "autocommit": True,
        # Prepared at once: the statements are few and run for as long as the process lives.
        "prepare_threshold": None if database.pooled else 0,
        # A pooler passes a changed name on with a statement of its own, each time a session goes to another client.
        "application_name": "tenure" if database.pooled else f"tenure {role}",
        "options": _options(database.dsn, {} if database.pooled else {**PINNED, **(settings or {})}),
        "client_encoding": "UTF8",
        **target(database.dsn),
        **KEEPALIVE,
    }


def _has_transaction_timeout(database: DatabaseTarget, connection: AsyncConnection[Any] | Connection[Any]) -> bool:
    return not database.pooled and connection.info.server_version >= TRANSACTION_TIMEOUT


def target(dsn: str) -> dict[str, Any]:
    """With several hosts, connect to a writable one: the first may be a standby. An explicit choice in the DSN wins."""
    parts = conninfo_to_dict(dsn)
    hosts = str(parts.get("host") or parts.get("hostaddr") or os.environ.get("PGHOST") or "")
    given = parts.get("target_session_attrs") or os.environ.get("PGTARGETSESSIONATTRS")
    return {"target_session_attrs": "read-write"} if "," in hosts and not given else {}


@cache
def server_of(dsn: str) -> str:
    """Identifies a server and database in the log, without user and password."""
    parts = conninfo_to_dict(dsn)
    return f"{parts.get('host') or parts.get('hostaddr') or ''}:{parts.get('port') or ''}/{parts.get('dbname') or ''}"


async def check_settings(database: DatabaseTarget) -> None:
    """Behind a transaction pooler we cannot set what we rely on. Raises `ConfigError` unless the role has these settings."""
    if not database.pooled:
        return
    try:
        async with await connect(database, "check") as connection:
            query = "select name, setting, current_user from pg_settings where name = any(%s)"
            found = await (await connection.execute(query, [list(RELIED_ON)])).fetchall()
    except (psycopg.Error, OSError) as error:
        raise faults.translated(error, server=server_of(database.dsn), dsn=database.dsn) or error from error
    for name, setting, user in found:
        if setting != RELIED_ON[name]:
            raise ConfigError(
                f"{name} is {setting!r} for role {user!r}, and behind a transaction pooler Tenure cannot change that: run "
                f"ALTER ROLE {quoted(user)} SET {name} = '{RELIED_ON[name]}', and let the pooler reconnect (RECONNECT)"
            )


def _options(dsn: str, settings: Mapping[str, str]) -> str:
    """Options of the DSN come first, so that ours win."""
    given = str(conninfo_to_dict(dsn).get("options") or os.environ.get("PGOPTIONS") or "")
    ours = [f"-c {name}=" + value.replace(" ", "\\ ") for name, value in settings.items()]
    return " ".join([given, *ours]).strip()
