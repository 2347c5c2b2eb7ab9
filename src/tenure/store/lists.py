"""The statements that list jobs, as values. Each goes by one index and looks at a bounded number of rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from uuid import UUID

from tenure.store.query import Query, array_literal

Values = Mapping[str, object]
"""What all lists take: before, floor and limit, and the filters."""

MOST_EXAMINED = 5_000
"""Rows that one look may pass over. Stands in the statements too: a number there tells the planner what is to come."""

MOST_KINDS = 50
"""Kinds that are walked side by side. They share the rows of a look: among too many none gets far."""


def live(values: Values) -> Query:
    return Query("control/list_live", values)


def held(values: Values) -> Query:
    return Query("control/list_held", values)


def dead(values: Values, kinds: Iterable[str]) -> Query:
    return Query("control/list_dead", {**values, "kinds": json.dumps(list(kinds))})


def keyed(values: Values, kinds: Iterable[str]) -> Query:
    return Query("control/list_keyed", {**values, "kinds": json.dumps(list(kinds))})


def children(values: Values) -> Query:
    return Query("control/list_children", values)


def finished(values: Values) -> Query:
    return Query("control/list_finished", values)


def finished_kinds(values: Values, kinds: Iterable[str]) -> Query:
    return Query("control/list_finished_kinds", {**values, "kinds": json.dumps(list(kinds))})


def finished_keyed(values: Values, kinds: Iterable[str]) -> Query:
    return Query("control/list_finished_keyed", {**values, "kinds": json.dumps(list(kinds))})


def finished_children(values: Values) -> Query:
    return Query("control/list_finished_children", values)


def unhappy(values: Values) -> Query:
    return Query("control/list_unhappy", values)


def kinds_of_dead() -> Query:
    return Query("control/find_dead_kinds")


def kinds_with_keys() -> Query:
    return Query("control/find_keyed_kinds")


def kinds_of_finished() -> Query:
    return Query("control/find_finished_kinds")


def kinds_of_queue(queue: str) -> Query:
    return Query("control/find_queue_kinds", {"queue": queue})


def find_all(ids: Iterable[UUID]) -> Query:
    return Query("control/find_jobs", {"ids": array_literal([str(job_id) for job_id in ids])})
