"""What an error of the driver means for us. Every error is exactly one of these:

- `StoreUnavailable`: nothing is wrong with what we sent, and the same statement may succeed later. `ConnectionRejected` is one
  that a person must fix: wrong database, role or password;
- `FailedInside`, a `StoreUnavailable` that a trigger or function of the user raised: the other rows of a batch may succeed;
- `SchemaMismatch`: our tables or functions are missing;
- `Refused`: all others. PostgreSQL does not accept these rows, but may accept the other rows of a batch. With
  `is_configuration`, a privilege is missing, and the rows are accepted once it is granted.
"""

from __future__ import annotations

import os
import re
from typing import Any

import psycopg
from psycopg import BaseConnection, errors
from psycopg.conninfo import conninfo_to_dict

from tenure.model.errors import SchemaMismatch, StoreUnavailable, TenureError
from tenure.store import reasons
from tenure.store.reasons import RefusalReason

MIGRATE = "run `tenure migrate`"

# Data, constraints, view checks, limits, and what a function or trigger of the user raises.
_REFUSAL_CLASSES = ("22", "23", "38", "39", "44", "54", "P0")


class Refused(TenureError):  # noqa: N818 - reads as the fact it states
    """PostgreSQL does not accept these rows. It may accept the others of a batch."""

    def __init__(
        self,
        message: str,
        sqlstate: str | None = None,
        *,
        statement: str = "",
        server: str = "",
        is_configuration: bool = False,
    ) -> None:
        """`is_configuration`: nothing is wrong with the rows, but a privilege is missing. Keep them until it is granted."""
        self.sqlstate = sqlstate
        self.is_configuration = is_configuration
        self.cause = f"refused {sqlstate}"
        self.statement = statement
        self.server = server
        super().__init__(message)


class ConnectionRejected(StoreUnavailable):
    """Waiting does not help. Reported at once at the start; retried later, because a person may be fixing it."""


class FailedInside(StoreUnavailable):
    """A trigger or function of the user raised what otherwise means an outage or a conflict, such as a lost connection of its
    own (dblink) or a lock that it did not get (NOWAIT). The connection is fine, and only its rows may be concerned."""

    def __init__(self, message: str, refusal: Refused) -> None:
        self.refusal = refusal
        """The same for the row alone: keep it, and try again later."""
        super().__init__(message, cause="trigger", statement=refusal.statement, server=refusal.server)


class StatementTimeout(StoreUnavailable):
    """The statement took longer than its caller allows and was canceled. It may have been committed nevertheless."""


def translated(
    error: BaseException,
    *,
    schema: str = "",
    statement: str = "",
    server: str = "",
    dsn: str = "",
    connection: BaseConnection[Any] | None = None,
) -> TenureError | None:
    """The error for the rest of the code; None if it is not one of the driver. The password of `dsn` is kept out of the text.
    `connection` lets the text of `SchemaMismatch` name the database."""
    if isinstance(error, UnicodeError):
        return Refused(f"text that cannot be sent ({words(error, dsn)})", "22021", statement=statement, server=server)
    if not isinstance(error, psycopg.Error | OSError):
        return None
    text = words(error, dsn)
    reason = _outage(error)
    if reason and _is_raised_inside(error, schema):
        refusal = Refused(text, getattr(error, "sqlstate", None), statement=statement, server=server, is_configuration=True)
        return FailedInside(f"a trigger or function that is not Tenure's failed: {text}", refusal)
    if reason:
        kind = ConnectionRejected if reason.lasting else StoreUnavailable
        # Without a code it is the connection that failed, not the statement.
        asked = statement if getattr(error, "sqlstate", None) else ""
        return kind(reason.text(text), cause=reason.cause, statement=asked, server=server)
    if is_missing_schema(error, schema):
        return schema_missing(error, connection)
    denied = isinstance(error, errors.InsufficientPrivilege) and not _is_foreign(error, schema)
    if denied:
        text += "; `tenure sql --roles` prints the grants that are needed"
    return Refused(text, getattr(error, "sqlstate", None), statement=statement, server=server, is_configuration=denied)


# Of a statement that was canceled, a server that ends or has no resources left, the user's function is not the reason.
_NEVER_OF_A_FUNCTION = ("25006", "53", "57")


def _is_raised_inside(error: BaseException, schema: str) -> bool:
    return (
        isinstance(error, psycopg.Error)
        and bool(error.sqlstate)
        and not (error.sqlstate or "").startswith(_NEVER_OF_A_FUNCTION)
        and not _is_stale_plan(error)
        and _is_foreign(error, schema)
    )


def is_outage(error: BaseException) -> bool:
    """Nothing is wrong with what we sent."""
    return _outage(error) is not None


def _outage(error: BaseException) -> RefusalReason | None:
    if isinstance(error, OSError):
        return reasons.LOST
    if not isinstance(error, psycopg.Error):
        return None
    if error.sqlstate == reasons.CANNOT_CONNECT_NOW:
        return reasons.by_words(str(error))
    if error.sqlstate:
        return reasons.STALE_PLAN if _is_stale_plan(error) else reasons.by_code(error.sqlstate)
    # libpq's own: the connection could not be made, or broke.
    return reasons.by_words(str(error)) if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError) else None


def _is_stale_plan(error: psycopg.Error) -> bool:
    """`cached plan must not change result type`: solved by a new connection."""
    return isinstance(error, errors.FeatureNotSupported) and error.diag.source_function == "RevalidateCachedQuery"


def is_poison(error: BaseException) -> bool:
    """A value is refused. Only for connections of the caller: other errors there are raised as the driver raises them."""
    return isinstance(error, psycopg.Error) and (error.sqlstate or "").startswith(_REFUSAL_CLASSES)


def words(error: BaseException, dsn: str = "") -> str:
    """The message of PostgreSQL on one line, without DETAIL (it may show rows), statement and password."""
    primary = error.diag.message_primary if isinstance(error, psycopg.Error) else None
    text = " ".join((primary or str(error)).split()) or type(error).__name__
    for secret in _secrets(dsn):
        text = text.replace(secret, "***")
    return text


def _secrets(dsn: str) -> list[str]:
    known = os.environ.get("PGPASSWORD"), conninfo_to_dict(dsn).get("password") if dsn else None
    return [str(secret) for secret in known if secret]


def schema_missing(error: BaseException, connection: BaseConnection[Any] | None = None) -> SchemaMismatch:
    from tenure.store.migrator import newest_version  # noqa: PLC0415 - the migrator imports this module

    way_out = MIGRATE if connection is None or connection.closed else wrong_database(connection)
    return SchemaMismatch(None, newest_version(), f"{way_out} ({words(error)})")


def named_database(connection: BaseConnection[Any]) -> str:
    """To which database we are connected, and as whom; without the password."""
    info = connection.info
    return f"this is database {info.dbname!r} on {info.host or 'the local socket'}, user {info.user!r}"


def wrong_database(connection: BaseConnection[Any]) -> str:
    return f"{named_database(connection)}; if that is the right database, {MIGRATE}, otherwise correct the DSN"


def is_missing_schema(error: BaseException, schema: str = "") -> bool:
    """A table, function or column of ours is missing, not one that a trigger or function of the user needs."""
    if not isinstance(
        error, errors.UndefinedTable | errors.InvalidSchemaName | errors.UndefinedFunction | errors.UndefinedColumn
    ):
        return False
    return not _is_foreign(error, schema)


def _is_foreign(error: psycopg.Error, schema: str) -> bool:
    """Raised inside a function that is not ours, such as a trigger of the user."""
    inside = re.search(r"function (.+?)\(", error.diag.context or "") if schema else None
    return inside is not None and not inside[1].replace('"', "").startswith(f"{schema}.")
