"""Columns of JSON text become typed values when a row is decoded."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple
from uuid import UUID

from tenure.store.json_columns import Json
from tenure.store.query import Query, columns_of
from tests.store.database import Database

ID = UUID("00000000-0000-0000-0000-000000000001")


class Child(NamedTuple):
    id: UUID
    at: datetime | None
    names: Json[list[str]]
    """JSON text inside of JSON."""


class Row(NamedTuple):
    number: int
    children: Json[list[Child]]
    counts: Json[dict[str, int]]
    nothing: Json[list[Child]]
    perhaps: Json[dict[str, int] | None]


def test_values_from_the_server_have_their_types(database: Database):
    rows = database.sql(
        """select 7, json_agg(c)::text, '{"a": 1}', null, null
             from (select '00000000-0000-0000-0000-000000000001'::uuid as id, '2026-01-02 03:04:05+00'::timestamptz as at,
                          '["x", "y"]'::jsonb::text as names
                   union all select '00000000-0000-0000-0000-000000000001'::uuid, null, null) c"""
    )
    [row] = Query("any", Row).decode(rows, lambda: list(columns_of(Row)))
    moment = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert row == Row(7, [Child(ID, moment, ["x", "y"]), Child(ID, None, [])], {"a": 1}, [], None)


def test_a_json_column_is_one_column():
    assert columns_of(Row) == ("number", "children", "counts", "nothing", "perhaps")
