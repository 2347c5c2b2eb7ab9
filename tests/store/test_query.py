"""Rows are decoded by the names of their columns, into the type that the statement's builder declares."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from tenure.store.query import INTEGER, OPTIONAL_TEXT, TEXT, ColumnError, Query, columns_of


class Point(NamedTuple):
    x: int
    y: int


class Named(NamedTuple):
    point: Point
    name: str


def decode(returns, columns, *rows):
    """Under a name of its own: how a statement is decoded is remembered."""
    return Query(f"test {columns} {returns}", returns).decode(list(rows), columns.split)


def test_columns_in_the_order_of_the_fields():
    assert decode(Point, "x y", (1, 2), (3, 4)) == [Point(1, 2), Point(3, 4)]


def test_columns_in_another_order():
    [point] = decode(Point, "y x", (1, 2))
    assert (type(point), point.x, point.y) == (Point, 2, 1)


def test_a_field_that_is_a_named_tuple_is_read_from_its_columns():
    assert columns_of(Named) == ("x", "y", "name")
    assert decode(Named, "name y x", ("a", 1, 2)) == [Named(Point(2, 1), "a")]
    assert decode(Named, "x y name", (1, 2, "a")) == [Named(Point(1, 2), "a")]


def test_the_one_column_of_a_scalar_may_have_any_name():
    assert decode(INTEGER, "count", (1,), (2,)) == [1, 2]
    assert decode(OPTIONAL_TEXT, "name", (None,)) == [None]


def test_a_statement_without_columns():
    assert decode(None, "") == []


@pytest.mark.parametrize(
    ("returns", "columns", "told"),
    [
        (Point, "x", "lacks column 'y': it is declared to return Point"),
        (Point, "x y z", "has the undeclared column 'z': it is declared to return Point"),
        (Point, "x y y", "has column 'y' more than once: it is declared to return Point"),
        (Named, "x y", "lacks column 'name': it is declared to return Named"),
        (None, "x", "has the undeclared column 'x': it is declared to return no rows"),
        (TEXT, "x y", "returns 2 columns (x, y), but is declared as a scalar"),
    ],
)
def test_other_columns_than_declared_are_refused(returns, columns, told):
    query = Query("jobs/some_statement", returns)
    with pytest.raises(ColumnError) as raised:
        query.decode([], columns.split)
    assert str(raised.value) == f"jobs/some_statement {told}"


def test_the_names_are_asked_for_once():
    asked = []
    query = Query("test asked once", Point)
    for _ in range(3):
        query.decode([(1, 2)], lambda: asked.append(1) or ["x", "y"])
    assert asked == [1]


def test_a_claim_that_passes_over_jobs_declares_the_same_rows():
    assert Query("jobs/claim_jobs", Point).passing_over("{}").returns is Point
