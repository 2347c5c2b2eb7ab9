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
from tenure.model.errors import ConfigError

LAST = 20.0  # seconds for those under way, at the end


class Nemesis:
    def __init__(self, field: Field, plan: Iterator[Planned], ledger: Ledger) -> None:
        self._field = field
        self._plan = plan
        self._file: IO[str] = ledger.write("faults.jsonl")
        self._under_way: set[asyncio.Task[None]] = set()
        self.done: Counter[str] = Counter()
        self.latest = ""

    async def run(self) -> None:
        """Until cancelled; then `heal()`."""
        began = time.monotonic()
        for planned in self._plan:
            await asyncio.sleep(max(0.0, began + planned.at - time.monotonic()))
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
        self._file.close()

    async def _strike(self, planned: Planned) -> None:
        began, done, told = time.time(), False, "cut short by the end"
        draws = Random(planned.seed)  # noqa: S311 - chosen to be repeatable
        try:
            told = await KINDS[planned.kind].strike(self._field, draws)
            done = True
            self.done[planned.kind] += 1
            self.latest = f"{planned.kind}: {told}"
        except (NotNow, ConfigError, psycopg.Error, OSError) as error:
            told = str(error).strip() or type(error).__name__
        finally:
            self._file.write(as_line(Fault(planned.kind, began, time.time(), told if done else "", done, "" if done else told)))
            self._file.flush()
