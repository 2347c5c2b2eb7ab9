"""What a context does its work with. There is one in the worker's process, and one in each process of its own for a job."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

from tenure.worker.notes import Notes
from tenure.worker.resources import Resources
from tenure.worker.runs import Run
from tenure.worker.settlements import Settlement


class Desk(Protocol):
    resources: Resources

    def progress(self, run: Run, percent: float, message: str | None) -> None: ...

    def alive(self, run: Run) -> None: ...

    def say(self, run: Run, level: str, message: str, fields: dict[str, Any]) -> None: ...

    async def flush(self, run: Run) -> None:
        """Returns when all that the run has said is written."""

    def flush_sync(self, run: Run) -> None: ...

    def settled(self, settlement: Settlement, *, watched: bool) -> None:
        """The run has settled its own job, in a transaction of its own. From any thread."""

    def doubt(self, settlement: Settlement) -> None:
        """The run may have settled its own job: the COMMIT was not answered."""


class LoopDesk:
    """For handlers in the worker's own process, on its loop or in its threads."""

    def __init__(self, notes: Notes, resources: Resources, settled: Callable[[Settlement, bool], None]) -> None:
        self.resources = resources
        self._notes = notes
        self._settled = settled
        self._loop = asyncio.get_running_loop()
        self.progress = notes.progress
        self.alive = notes.alive
        self.say = notes.say

    async def flush(self, run: Run) -> None:
        await self._notes.flush([run])

    def flush_sync(self, run: Run) -> None:
        asyncio.run_coroutine_threadsafe(self.flush(run), self._loop).result()

    def settled(self, settlement: Settlement, *, watched: bool) -> None:
        self._loop.call_soon_threadsafe(self._settled, settlement, watched)

    def doubt(self, settlement: Settlement) -> None:
        settlement.run.in_doubt = settlement
