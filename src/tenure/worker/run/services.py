"""What a context does its work with. There is one in the worker's process, and one in each process of its own for a job."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Executor
from typing import Any, Protocol

from tenure.model.event_bus import Events
from tenure.model.kinds import Registry
from tenure.model.wakeup import Wakeup
from tenure.worker.run.resources import Resources
from tenure.worker.run.run import Run
from tenure.worker.run.settlement import Settlement
from tenure.worker.run.steps import StepWriter
from tenure.worker.run.updates import UpdateWriter

log = logging.getLogger("tenure")

LONGEST_FLUSH = 2.0
"""Seconds for which a run's own transaction is held open to write its last progress and log lines."""


class RunServices(Protocol):
    resources: Resources
    kinds: Registry

    def progress(self, run: Run, percent: float, message: str | None) -> None: ...

    def alive(self, run: Run) -> None: ...

    def log_line(self, run: Run, level: str, message: str, fields: dict[str, Any]) -> None: ...

    async def flush(self, run: Run) -> None:
        """Returns when all that the run has reported is written, or cannot be."""

    def flush_sync(self, run: Run) -> None: ...

    def settled(self, settlement: Settlement, *, watched: bool) -> None:
        """The run has settled its own job, in a transaction of its own. From any thread."""

    def doubt(self, settlement: Settlement) -> None:
        """The run may have settled its own job: the COMMIT was not answered."""


CallInProcess = Callable[[Callable[..., Any], Sequence[Any], Mapping[str, Any]], Awaitable[Any]]
"""Calls a function in another process, and returns its result."""


class LoopServices:
    """For handlers in the worker's own process, on its loop or in its threads."""

    call_in_process: CallInProcess
    """Set when the worker has made the pool of its processes, which uses these services itself."""

    def __init__(
        self,
        updates: UpdateWriter,
        steps: StepWriter,
        resources: Resources,
        *,
        threads: Executor,
        settled: Callable[[Settlement, bool], None],
        announce: Callable[[Wakeup], None],
        events: Events,
        kinds: Registry,
    ) -> None:
        """`announce(wakeup)` wakes others and this worker after a commit."""
        self.resources = resources
        self.steps = steps
        self.threads = threads
        self.kinds = kinds
        self.announce = announce
        self.events = events
        self._updates = updates
        self._settled = settled
        self._loop = asyncio.get_running_loop()
        self.progress = updates.progress
        self.alive = updates.alive
        self.log_line = updates.log_line

    async def flush(self, run: Run) -> None:
        """Needs a connection beside the one of the run's transaction. Where all are taken by others that wait in the same way,
        as behind a small pooler, each stops waiting after some time."""
        try:
            async with asyncio.timeout(LONGEST_FLUSH):
                await self._updates.flush([run])
        except TimeoutError:
            log.warning("the last progress and log lines of a run could not be written in time", extra=run.log_fields)

    def flush_sync(self, run: Run) -> None:
        asyncio.run_coroutine_threadsafe(self.flush(run), self._loop).result()

    def settled(self, settlement: Settlement, *, watched: bool) -> None:
        self._loop.call_soon_threadsafe(self._settled, settlement, watched)

    def doubt(self, settlement: Settlement) -> None:
        settlement.run.in_doubt = settlement
