"""Translates the errors of any driver into those that a `Link` raises for psycopg."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import psycopg
from psycopg import errors

from tenure.model.errors import StoreUnavailable, TenureError, TransactionAborted
from tenure.store import faults

ABORTED = "25P02"


def _never() -> bool:
    return False


class guarded:  # noqa: N801 - used as a function; a generator would cost each enqueue several microseconds
    """Around a statement of ours. `lost` says whether the connection is gone, where the driver's error does not."""

    __slots__ = ("_lost",)

    def __init__(self, lost: Callable[[], bool] = _never) -> None:
        self._lost = lost

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, Exception):
            translated = _outage(error, self._lost) or _fault(error)
            if translated is not None:
                raise translated from error


@contextmanager
def ending(lost: Callable[[], bool] = _never) -> Iterator[None]:
    """Around a begin or commit. A refusal is caused by the caller's own statements, so the driver's error is raised as it is."""
    try:
        yield
    except Exception as error:
        translated = _outage(error, lost)
        if translated is None:
            raise
        raise translated from error


@contextmanager
def undoing(lost: Callable[[], bool] = _never) -> Iterator[None]:
    """Around a rollback. With the connection the transaction is gone, too."""
    with suppress(StoreUnavailable), ending(lost):
        yield


def _outage(error: Exception, lost: Callable[[], bool]) -> TenureError | None:
    known = _in_terms_of_psycopg(error)
    # SQLAlchemy asks the driver whether the connection is gone and keeps the answer.
    if known and faults.is_outage(known):
        return faults.translated(known)
    if lost() or getattr(error, "connection_invalidated", False):
        return StoreUnavailable(f"PostgreSQL cannot be reached: {faults.words(known or error)}")
    return None


def _fault(error: Exception) -> TenureError | None:
    known = _in_terms_of_psycopg(error)
    if _is_aborted(error) or (known is not None and getattr(known, "sqlstate", None) == ABORTED):
        return TransactionAborted()
    if known and faults.is_poison(known):
        return faults.Refused(faults.words(known), getattr(known, "sqlstate", None))
    if known and faults.is_missing_schema(known):
        return faults.schema_missing(known)
    return None


def _is_aborted(error: Exception) -> bool:
    """Django and SQLAlchemy refuse further statements by themselves, and name the earlier error as the cause."""
    return type(error).__name__ in ("TransactionManagementError", "PendingRollbackError")


def _in_terms_of_psycopg(error: BaseException) -> BaseException | None:
    """The error in terms of psycopg. The innermost one counts: those around it add the statement and its values to the text."""
    for layer in reversed(list(_layers(error))):
        if isinstance(layer, psycopg.Error | OSError):
            return layer
        state = getattr(layer, "sqlstate", None) or getattr(layer, "pgcode", None)
        if isinstance(state, str):
            return _stand_in(state, faults.words(layer))
    return None


def _layers(error: BaseException) -> Iterator[BaseException]:
    """The error, what it wraps, what that one wraps, and so on. What an error was raised `from` is the same error only where a
    library translates its driver's; elsewhere it is an earlier one, about something else."""
    seen: list[BaseException] = []
    inner: object = error
    while isinstance(inner, BaseException) and inner not in seen:
        seen.append(inner)
        yield inner
        inner = getattr(inner, "orig", None) or (inner.__cause__ if _translates(inner) else None)


def _translates(error: BaseException) -> bool:
    module = type(error).__module__
    return module == "django.db.utils" or module.startswith("sqlalchemy.dialects.")


def _stand_in(state: str, words: str) -> psycopg.Error:
    try:
        error: psycopg.Error = errors.lookup(state)(words)
    except KeyError:
        error = psycopg.DatabaseError(words)
    error.sqlstate = state
    return error
