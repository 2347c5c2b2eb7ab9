"""What an error of the driver means for us: wait and repeat, isolate a row, or tell."""

from __future__ import annotations

import psycopg
from psycopg import errors

from tenure.model.errors import SchemaMismatch, TenureError

# Classes and codes after which the same statement may succeed later, without anyone's doing.
_OUTAGE_CLASSES = ("08", "57P", "53")
# Data, constraints, views' checks, limits, and whatever a function or trigger of the user's raises.
_REFUSAL_CLASSES = ("22", "23", "38", "39", "44", "54", "P0")
# 25P03: we were asleep in the middle of a transaction, and our session was ended for it.
_OUTAGE_CODES = {"40001", "40P01", "55P03", "25006", "25P03", "57014"}


class Refused(TenureError):  # noqa: N818 - reads as the fact it states
    """PostgreSQL refuses a value: the same rows will never go through. The rest of a batch will."""

    def __init__(self, message: str, sqlstate: str | None = None) -> None:
        self.sqlstate = sqlstate
        super().__init__(message)


def is_outage(error: BaseException) -> bool:
    """The server is away, overloaded or shutting down: nothing is wrong with what we sent."""
    if isinstance(error, OSError):
        return True
    if not isinstance(error, psycopg.Error):
        return False
    state = error.sqlstate
    if state is None:
        # libpq's own: the connection could not be made, or broke.
        return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    return state.startswith(_OUTAGE_CLASSES) or state in _OUTAGE_CODES


def is_poison(error: BaseException) -> bool:
    """A value in what we sent is refused: the same batch will never go through, but its other rows will."""
    return isinstance(error, psycopg.Error) and (error.sqlstate or "").startswith(_REFUSAL_CLASSES)


def words(error: BaseException) -> str:
    return str(error).strip() or type(error).__name__


def schema_missing(error: BaseException) -> SchemaMismatch:
    from tenure.store.migrator import newest_version  # noqa: PLC0415 - the migrator stands above

    return SchemaMismatch(None, newest_version(), f"run `tenure migrate` ({words(error).splitlines()[0]})")


def is_missing_schema(error: BaseException) -> bool:
    return isinstance(error, errors.UndefinedTable | errors.InvalidSchemaName | errors.UndefinedFunction | errors.UndefinedColumn)
