"""Schedules on a database, and links that die, sleep or lose an answer on the way."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

from tenure.model.errors import StoreUnavailable
from tenure.model.schedules import schedule
from tenure.store import schedules
from tenure.store.link import Link
from tenure.store.query import Query
from tests.store.database import Database

T0 = datetime(2031, 5, 5, 12, tzinfo=UTC)
"""A whole minute, and no moment of this machine's clock: what is asked for is asked for by it."""


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def plan(database: Database, name: str = "s", since: datetime = T0, **options: Any) -> None:
    """A schedule of which nothing before `since` counts."""
    if "cron" not in options:
        options = {"every": "60s", **options}
    made = schedule(**{"name": name, "kind": "work", **options})
    assert database.run(schedules.create(made, paused=False, by="a test"))
    database.sql("update tenure.schedules set since = %s where name = %s", since, name)


def ticks(database: Database, name: str = "s") -> list[tuple[float, str, int]]:
    """Seconds after T0, what became of it, and for how many times it stands."""
    rows = database.sql("select planned_at, outcome, times from tenure.ticks where schedule = %s order by planned_at", name)
    return [((planned - T0).total_seconds(), outcome, times) for planned, outcome, times in rows]


def jobs(database: Database, name: str = "s") -> list[tuple[float, bool]]:
    """Live and finished ones: the planned time, in seconds after T0, and whether it was late."""
    rows = database.sql(
        "select (system -> 'schedule' ->> 'for')::timestamptz as planned, (system -> 'schedule' ->> 'late')::boolean "
        "from tenure.all_jobs where system -> 'schedule' ->> 'name' = %s order by planned",
        name,
    )
    return [((planned - T0).total_seconds(), late) for planned, late in rows]


def finish(database: Database) -> None:
    """All that is live is done."""
    database.sql("delete from tenure.jobs where state <> 'dead_letter'")


class LossyLink(Link):
    """Does what it is asked to, and then its connection breaks before the answer is there."""

    lose: str | None = None

    async def fetch(self, query: Query) -> list[tuple[Any, ...]]:
        rows = await super().fetch(query)
        if query.name == self.lose:
            self.lose = None
            await self._drop()
            raise StoreUnavailable("the answer is lost")
        return rows


class DyingLink(Link):
    """Its process is killed just before it asks."""

    dies_at = "schedules/record_ticks"

    async def fetch(self, query: Query) -> list[tuple[Any, ...]]:
        if query.name == self.dies_at:
            await self._drop()
            raise asyncio.CancelledError
        return await super().fetch(query)


class SleepyLink(Link):
    """Falls asleep between what it has read and what it will write."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.asleep, self.awake = asyncio.Event(), asyncio.Event()

    async def fetch(self, query: Query) -> list[tuple[Any, ...]]:
        if query.name == "schedules/record_ticks":
            self.asleep.set()
            await self.awake.wait()
        return await super().fetch(query)
