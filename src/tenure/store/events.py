"""The statements about events that are sent to workflows, as values."""

from __future__ import annotations

from typing import NamedTuple

from tenure.store.json_columns import Json
from tenure.store.leases import Term, guard
from tenure.store.moved_jobs import MovedJob
from tenure.store.query import ALL, BOOLEAN, INTEGER, Pick, Query


class EventRow(NamedTuple):
    payload: str | None
    """JSON."""
    position: int
    """In the stream of its name and key, in the order in which they were committed."""


class NumberedEventsRow(NamedTuple):
    holds: bool
    touched: int
    peeked: Json[list[str]]
    """The ids, if `pick.peek`."""


class WokenRow(NamedTuple):
    holds: bool
    checked: int
    """Waits that need not be looked at again."""
    touched: int
    """Jobs that are pending now."""
    queues: list[str]
    jobs: Json[list[MovedJob]]
    """Empty unless `listing`."""
    peeked: Json[list[str]]
    """The ids, if `pick.peek`."""


def emit(events: str) -> Query[int]:
    return Query("events/emit_events", INTEGER, {"events": events})


def signal(job_id: str, name: str, payload: str, by: str | None, *, link: str | None = None) -> Query[bool]:
    """Whether the chain of the job has a live link, so that the signal was sent; with `link`, this very one."""
    return Query("events/signal_job", BOOLEAN, {"id": job_id, "name": name, "payload": payload, "by": by, "link": link})


def find(name: str, key: str) -> Query[EventRow]:
    return Query("events/find_event", EventRow, {"name": name, "key": key})


def find_next(name: str, key: str, after: int) -> Query[EventRow]:
    return Query("events/next_event", EventRow, {"name": name, "key": key, "after": after})


def number(term: Term, *, limit: int, pick: Pick = ALL) -> Query[NumberedEventsRow]:
    return Query("events/number_events", NumberedEventsRow, {**guard(term), **pick.values(limit)})


def wake(term: Term, *, limit: int, listing: bool = False, pick: Pick = ALL) -> Query[WokenRow]:
    return Query("events/wake_waiting", WokenRow, {**guard(term), "listing": listing, **pick.values(limit)})
