"""An engine for the app's database, and jobs for sessions of another one.

With the same database, `job.using(conn=session)` loses nothing.
"""

from __future__ import annotations

from typing import Any

from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import URL, event
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Session, SessionTransaction
from sqlalchemy.util import await_only

from tenure.app import Tenure
from tenure.client.calls import Call

_WAITING = "tenure.after_commit"


def database_url(app: Tenure) -> URL:
    """The app's database, for SQLAlchemy with psycopg: `create_engine(database_url(app))`, or `create_async_engine` with it.

    For another driver: `database_url(app).set(drivername="postgresql+asyncpg")`. Raises `ConfigError` if no database is set.
    """
    parts = {name: str(value) for name, value in conninfo_to_dict(app.settings.database.dsn).items() if value is not None}
    host = parts.get("host", "")
    # SQLAlchemy reads the folder of a socket, and several hosts, from the query only.
    is_name = bool(host) and not host.startswith("/") and "," not in host
    return URL.create(
        "postgresql+psycopg",
        username=parts.pop("user", None),
        password=parts.pop("password", None),
        host=parts.pop("host") if is_name else None,
        port=int(parts.pop("port")) if is_name and "port" in parts else None,
        database=parts.pop("dbname", None),
        query=parts,
    )


def enqueue_after_commit(app: Tenure, session: Session | AsyncSession, *calls: Call[Any]) -> None:
    """Enqueues jobs when the session's transaction has committed, and forgets them if it is rolled back.

    `enqueue_after_commit(app, session, send_email.call(message))`. For sessions of a database that is not Tenure's. If the
    process dies between the commit and the enqueue, or PostgreSQL cannot be reached then, the jobs are lost; the error of the
    enqueue is raised by `commit()`.
    """
    is_async = isinstance(session, AsyncSession)
    inner = session.sync_session if isinstance(session, AsyncSession) else session
    waiting: list[_Waiting] | None = inner.info.get(_WAITING)
    if waiting is None:
        waiting = inner.info[_WAITING] = []
        event.listen(inner, "after_commit", _on_commit)
        event.listen(inner, "after_soft_rollback", _on_rollback)
    waiting.append(_Waiting(app, list(calls), inner.get_nested_transaction() or inner.get_transaction(), is_async=is_async))


class _Waiting:
    def __init__(self, app: Tenure, calls: list[Call[Any]], within: SessionTransaction | None, *, is_async: bool) -> None:
        self.app = app
        self.calls = calls
        self.within = within
        """The savepoint or transaction that they belong to."""
        self.is_async = is_async

    def enqueue(self) -> None:
        if self.is_async:
            await_only(self.app.enqueue_many(self.calls))  # SQLAlchemy calls its events where it can await
        else:
            self.app.enqueue_many_sync(self.calls)


def _on_commit(session: Session) -> None:
    waiting: list[_Waiting] = session.info[_WAITING]
    taken = waiting[:]
    waiting.clear()
    for one in taken:
        one.enqueue()


def _on_rollback(session: Session, previous: SessionTransaction) -> None:
    """`previous` may be a savepoint: then what was enqueued before it stays."""
    waiting: list[_Waiting] = session.info[_WAITING]
    waiting[:] = [one for one in waiting if not _is_within(one.within, previous)]


def _is_within(transaction: SessionTransaction | None, outer: SessionTransaction) -> bool:
    while transaction is not None:
        if transaction is outer:
            return True
        transaction = transaction.parent
    return outer.parent is None  # everything, if the whole transaction was rolled back
