"""The test's end of `handlers`: where they are, what they wrote, and who may look at it when."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.store.database import Database
from tests.store.forged_jobs import take_over
from tests.waiting import until


class Points:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def hold(self, point: str, name: str | None = None) -> None:
        """The first run of each job waits there, or of the job with that name only."""
        (self._folder / (f"hold {point}" if name is None else f"hold {name} at {point}")).touch()

    def go(self, point: str) -> None:
        (self._folder / f"go {point}").touch()

    def passed(self, point: str, **wanted: Any) -> list[dict[str, Any]]:
        file = self._folder / "points"
        lines = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
        return [line for line in lines if line["point"] == point and all(line[name] == value for name, value in wanted.items())]

    async def reached(self, point: str, **wanted: Any) -> dict[str, Any]:
        return (await until(lambda: self.passed(point, **wanted)))[-1]


class Shop:
    """What other sessions can see: the user's rows, the child jobs, and the outcome of the job itself."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.sql = database.sql

    def seen(self, name: str) -> tuple[int, int, str]:
        """In one snapshot: rows written, jobs handed on, the state of the job that did it."""
        [row] = self.sql(
            """select (select count(*) from public.payments where name = %s),
                      (select count(*) from tenure.all_jobs where kind = 'ship' and input ->> 'name' = %s),
                      (select state from tenure.all_jobs where kind <> 'ship' and input ->> 'name' = %s)""",
            name, name, name,
        )  # fmt: skip
        return row

    def transactions(self, name: str) -> list[tuple[str]]:
        """Which transactions wrote the row, the job handed on and the history."""
        return self.sql(
            """select xmin::text from public.payments where name = %s
                union select xmin::text from tenure.jobs where kind = 'ship' and input ->> 'name' = %s
                union select xmin::text from tenure.history where input ->> 'name' = %s""",
            name, name, name,
        )  # fmt: skip

    async def comes_to(self, name: str, rows: int, handed_on: int, state: str) -> None:
        await until(lambda: self.seen(name), is_=(rows, handed_on, state))

    def of(self, name: str, *columns: str) -> tuple[Any, ...]:
        [row] = self.sql(f"select {', '.join(columns)} from tenure.all_jobs where kind <> 'ship' and input ->> 'name' = %s", name)
        return row

    def take_away(self, name: str) -> None:
        """As if another worker had it now."""
        take_over(self.sql, *self._running(name))

    def _running(self, name: str) -> list[str]:
        return [
            row[0] for row in self.sql("select id::text from tenure.jobs where kind <> 'ship' and input ->> 'name' = %s", name)
        ]

    def requeue(self, name: str) -> None:
        self.sql(
            """update tenure.jobs
                  set claim_id = null, state = 'pending', position = nextval('tenure.job_position')
                where kind <> 'ship' and input ->> 'name' = %s""",
            name,
        )
        self.sql("select pg_notify('tenure', '')")
