"""The statements that list jobs, as values. Each goes by one index and looks at a bounded number of rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import NamedTuple
from uuid import UUID

from tenure.store.query import TEXT, Query, Scalar, array_literal

Values = Mapping[str, object]
"""What all lists take: before, floor and limit, and the filters."""

MOST_EXAMINED = 5_000
"""Rows that one statement examines at most. The number is in the statements as well, to tell the planner what to expect."""

IDS = Scalar[UUID]()

MOST_KINDS = 50
"""Kinds that one statement walks side by side. They share its rows: with too many kinds, each gets too few."""


class ListRow(NamedTuple):
    """The one row of a list."""

    ids: list[UUID]
    """Newest first."""
    edge: UUID | None
    """Everything down to this id, itself included, was looked at; None: nothing is left."""


def live(values: Values) -> Query[ListRow]:
    return Query("lists/list_live", ListRow, values)


def held(values: Values) -> Query[ListRow]:
    return Query("lists/list_held", ListRow, values)


def dead(values: Values, kinds: Iterable[str]) -> Query[ListRow]:
    return Query("lists/list_dead", ListRow, {**values, "kinds": json.dumps(list(kinds))})


def keyed(values: Values, kinds: Iterable[str]) -> Query[ListRow]:
    return Query("lists/list_keyed", ListRow, {**values, "kinds": json.dumps(list(kinds))})


def children(values: Values) -> Query[ListRow]:
    return Query("lists/list_children", ListRow, values)


def finished(values: Values) -> Query[ListRow]:
    return Query("lists/list_finished", ListRow, values)


def finished_kinds(values: Values, kinds: Iterable[str]) -> Query[ListRow]:
    return Query("lists/list_finished_kinds", ListRow, {**values, "kinds": json.dumps(list(kinds))})


def finished_keyed(values: Values, kinds: Iterable[str]) -> Query[ListRow]:
    return Query("lists/list_finished_keyed", ListRow, {**values, "kinds": json.dumps(list(kinds))})


def finished_children(values: Values) -> Query[ListRow]:
    return Query("lists/list_finished_children", ListRow, values)


def not_completed(values: Values) -> Query[ListRow]:
    return Query("lists/list_not_completed", ListRow, values)


def kinds_of_dead() -> Query[str]:
    return Query("lists/find_dead_kinds", TEXT)


def kinds_with_keys() -> Query[str]:
    return Query("lists/find_keyed_kinds", TEXT)


def kinds_of_finished() -> Query[str]:
    return Query("lists/find_finished_kinds", TEXT)


def kinds_of_queue(queue: str) -> Query[str]:
    return Query("lists/find_queue_kinds", TEXT, {"queue": queue})


def builtin(ids: Iterable[UUID], reserved: str) -> Query[UUID]:
    """Those whose kinds begin with `reserved`."""
    return Query("lists/find_builtin", IDS, {"ids": array_literal([str(job_id) for job_id in ids]), "reserved": reserved})
