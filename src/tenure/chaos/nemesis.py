"""Carries out a plan of faults, and writes down what was done and when."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import IO

import psycopg

from tenure.chaos.faults import KINDS
from tenure.chaos.field import Field, NotNow
from tenure.chaos.ledger import Fault, Ledger, as_line
from tenure.chaos.plan import Planned
from tenure.model.errors import TenureError

LAST = 8.0  # seconds for those under way, at the end; the others are cut short
SHELTERED = 120.0  # seconds for which a worker is not struck, one after the other


class Nemesis:
    def __init__(self, field: Field, plan: Iterator[Planned], ledger: Ledger) -> None:
        self._field = field
        self._plan = plan
        self._file: IO[str] = ledger.write("faults.jsonl")
        self._under_way: set[asyncio.Task[None]] = set()
        self._tried: set[str] = set()
        self.done: Counter[str] = Counter()
        self.latest = ""

    async def run(self) -> None:
        """Until cancelled; then `heal()`."""
        began = time.monotonic()
        for planned in self._plan:
            await asyncio.sleep(max(0.0, began + planned.at - time.monotonic()))
            self._shelter(planned.at)
            task = asyncio.create_task(self._strike(planned))
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)

    async def heal(self) -> None:
        """No fault is at work afterwards."""
        if self._under_way:
            _, late = await asyncio.wait(self._under_way, timeout=LAST)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        self._field.fleet.wake_all()
        if self._field.server is not None:
            await asyncio.to_thread(self._field.server.start)
        for name in sorted(self._tried):
            if (undo := KINDS[name].heal) is not None:
                await undo(self._field)
        self._file.close()

    def _shelter(self, at: float) -> None:
        workers = self._field.fleet.workers
        self._field.sheltered = workers[int(at // SHELTERED) % len(workers)].name

    async def _strike(self, planned: Planned) -> None:
        began, done, told = time.time(), False, "cut short by the end"
        stopped: tuple[int, ...] = ()
        self._tried.add(planned.kind)
        draws = Random(planned.seed)  # noqa: S311 - chosen to be repeatable
        try:
            struck = await KINDS[planned.kind].strike(self._field, draws)
            done = True
            told, stopped = (struck, ()) if isinstance(struck, str) else (struck.told, struck.stopped)
            self.done[planned.kind] += 1
            self.latest = f"{planned.kind}: {told}"
        except (NotNow, TenureError, psycopg.Error, OSError) as error:
            told = str(error).strip() or type(error).__name__
        finally:
            target, detail = (told, "") if done else ("", told)
            self._file.write(as_line(Fault(planned.kind, began, time.time(), target, done, detail, stopped)))
            self._file.flush()
