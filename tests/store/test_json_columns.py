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


class Reply(NamedTuple):
    names: list[str]
    counts: dict[str, int]
    children: list[Child]


class Job(NamedTuple):
    id: int
    kind: str


class ClaimLike(NamedTuple):
    reply: Json[Reply | None]
    job: Job


def test_the_first_row_of_a_claim_has_a_reply_and_the_others_a_job():
    rows = [('{"names": null, "counts": null, "children": null}', None, None), (None, 1, "work"), (None, 2, "other")]
    first, *others = Query("any", ClaimLike).decode(rows, lambda: ["reply", "id", "kind"])
    assert first.reply == Reply([], {}, [])
    assert others == [ClaimLike(None, Job(1, "work")), ClaimLike(None, Job(2, "other"))]
    assert isinstance(others[0].job, Job)


def test_the_columns_of_a_claim_may_be_in_another_order():
    [row] = Query("reordered", ClaimLike).decode(
        [("work", '{"names": ["a"], "counts": {}, "children": []}', 1)], lambda: ["kind", "reply", "id"]
    )
    assert row == ClaimLike(Reply(["a"], {}, []), Job(1, "work"))
