"""Injects the faults of a plan, and records what was done and when."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import IO

import psycopg

from tenure.chaos.faults import KINDS
from tenure.chaos.faults.base import FaultResult, FaultSkipped
from tenure.chaos.ledger import Fault, Ledger, as_line
from tenure.chaos.plan import PlannedFault
from tenure.chaos.testbed import Testbed
from tenure.model.errors import TenureError

END_TIMEOUT = 8.0  # seconds for active faults at the end; then they are cut short
SPARED_FOR = 120.0  # seconds for which no fault hits one worker; then it is the next one's turn


class Nemesis:
    def __init__(self, testbed: Testbed, plan: Iterator[PlannedFault], ledger: Ledger) -> None:
        self._testbed = testbed
        self._plan = plan
        self._file: IO[str] = ledger.write("faults.jsonl")
        self._active: set[asyncio.Task[None]] = set()
        self._tried: set[str] = set()
        self.done: Counter[str] = Counter()
        self.latest = ""

    async def run(self) -> None:
        """Runs until cancelled; call `heal()` then."""
        began = time.monotonic()
        for planned in self._plan:
            await asyncio.sleep(max(0.0, began + planned.at - time.monotonic()))
            self._spare_worker(planned.at)
            task = asyncio.create_task(self._inject(planned))
            self._active.add(task)
            task.add_done_callback(self._active.discard)

    async def heal(self) -> None:
        """Afterwards no fault is active."""
        if self._active:
            _, late = await asyncio.wait(self._active, timeout=END_TIMEOUT)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        self._testbed.workers.continue_all()
        if self._testbed.server is not None:
            await asyncio.to_thread(self._testbed.server.start)
        for name in sorted(self._tried):
            if (undo := KINDS[name].heal) is not None:
                await undo(self._testbed)
        self._file.close()

    def _spare_worker(self, at: float) -> None:
        workers = self._testbed.workers.workers
        self._testbed.spared = workers[int(at // SPARED_FOR) % len(workers)].name

    async def _inject(self, planned: PlannedFault) -> None:
        began = time.time()
        result, reason = None, "cut short by the end of the faults"
        self._tried.add(planned.kind)
        random = Random(planned.seed)  # noqa: S311 - chosen to be repeatable
        try:
            result = await KINDS[planned.kind].inject(self._testbed, random)
            self.done[planned.kind] += 1
            self.latest = f"{planned.kind}: {result.target}"
        except (FaultSkipped, TenureError, psycopg.Error, OSError) as error:
            reason = str(error).strip() or type(error).__name__
        finally:
            self._record(planned.kind, began, result, reason)

    def _record(self, kind: str, began: float, result: FaultResult | None, reason: str) -> None:
        ended = time.time()
        if result is None:
            fault = Fault(kind, began, ended, target="", done=False, detail=reason)
        else:
            fault = Fault(kind, began, ended, result.target, done=True, stopped=result.stopped)
        self._file.write(as_line(fault))
        self._file.flush()
