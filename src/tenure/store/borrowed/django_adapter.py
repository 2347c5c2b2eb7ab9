"""Django's connections. A statement joins the transaction it finds; `begin` opens one by `transaction.atomic()`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tenure.model.errors import ConfigError, TransactionError
from tenure.store.borrowed.base import Blocking
from tenure.store.borrowed.translation import ending, guarded, undoing
from tenure.store.query import Query, T
from tenure.store.statements import statement


def connection_of(alias: str) -> object:
    """Django's connection of this thread to the database with this alias."""
    from django.db import connections  # noqa: PLC0415 - only users of Django call this

    if alias not in connections.settings:
        raise ConfigError(f"DATABASES has no alias {alias!r}: use one of {', '.join(map(repr, connections.settings))}")
    found: object = connections[alias]
    return found


def django_block(connection: Any) -> Any:
    """`transaction.atomic()` on this connection."""
    from django.db import transaction  # noqa: PLC0415 - loaded already, by the caller

    return transaction.atomic(using=connection.alias)


class DjangoConnection(Blocking):
    thread_bound = True

    def __init__(self, connection: Any) -> None:
        # Django's caches stand behind the same kind of proxy as its databases.
        vendor = getattr(connection, "vendor", "no database")
        if vendor != "postgresql":
            raise ConfigError(f"this connection of Django's leads to {vendor}: pass connections[alias] of one on PostgreSQL")
        self._connection = connection
        self._atomic: Any = None
        self._after_commit: list[Any] = []

    def source_sync(self) -> object:
        settings = self._connection.settings_dict
        return tuple(str(settings.get(name) or "") for name in ("HOST", "PORT", "NAME"))

    def fetch_sync(self, query: Query[T], schema: str) -> list[T]:
        with guarded(), _awaited_by_nobody(), self._connection.cursor() as cursor:
            cursor.execute(statement(query.name, schema), dict(query.values))
            rows = [tuple(row) for row in cursor.fetchall()] if cursor.description else []
            return query.decode(rows, lambda: [column[0] for column in cursor.description or ()])

    def begin_sync(self) -> None:
        if self._atomic is not None:
            return
        with ending():
            if self._connection.in_atomic_block:
                raise ConfigError(
                    "this Django connection is already inside of transaction.atomic(), which would commit before the job is "
                    "completed: remove the outer atomic(), or use it inside of the ctx.transaction(connection) block"
                )
            if not self._connection.get_autocommit():
                raise ConfigError(
                    "autocommit is off on this Django connection, so atomic() would not commit: call set_autocommit(True), and "
                    "close the connection of jobs that leave it off (see app.around_thread)"
                )
            atomic = django_block(self._connection)
            atomic.__enter__()
            self._atomic = atomic

    def commit_sync(self) -> None:
        if self._connection.savepoint_ids:
            raise TransactionError("an inner transaction.atomic() was entered and never left: use it by `with`")
        with ending(), self._connection.cursor() as cursor:
            cursor.execute("select 1")  # fails where an earlier error has aborted the transaction
        atomic, self._atomic = self._atomic, None
        # A callback of on_commit() that fails must not look like a commit that failed.
        self._after_commit, self._connection.run_on_commit = self._connection.run_on_commit, []
        with ending():
            atomic.__exit__(None, None, None)

    def rollback_sync(self) -> None:
        atomic, self._atomic = self._atomic, None
        if atomic is not None:
            with undoing():
                while self._connection.in_atomic_block:  # those inside that were never left come first
                    atomic.__exit__(RuntimeError, RuntimeError("rolled back"), None)

    def after_commit_sync(self) -> None:
        self._connection.run_on_commit, self._after_commit = self._after_commit, []
        self._connection.run_and_clear_commit_hooks()


@contextmanager
def _awaited_by_nobody() -> Iterator[None]:
    """Django rejects the use of its connections on an event loop. Its message does not explain how to enqueue a job there."""
    try:
        yield
    except Exception as error:
        if type(error).__name__ != "SynchronousOnlyOperation":
            raise
        raise ConfigError(
            "Django's connections cannot be used in a coroutine: put the transaction and enqueue_sync(...) into a function "
            "and await it by asgiref's sync_to_async, or leave conn= out"
        ) from error
