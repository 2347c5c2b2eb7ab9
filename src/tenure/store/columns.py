"""The columns of the statement that a psycopg cursor ran last."""

from __future__ import annotations

from typing import Any

from psycopg import AsyncCursor, Cursor


def has_rows(cursor: Cursor[Any] | AsyncCursor[Any]) -> bool:
    """Whether the statement returns rows. Cheaper than `cursor.description`, which makes an object for each column."""
    result = cursor.pgresult
    return result is not None and result.nfields > 0


def column_names(cursor: Cursor[Any] | AsyncCursor[Any]) -> list[str]:
    return [column.name for column in cursor.description or ()]
