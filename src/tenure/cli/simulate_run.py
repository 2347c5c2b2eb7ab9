"""Runs a simulation: enqueues jobs at a rate, and follows them until all have ended."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice
from typing import Any
from uuid import UUID

from tenure.cli.display_counts import Tally, outcomes, rows, tally
from tenure.cli.live_display import Display, DisplayState
from tenure.client.client import Client
from tenure.client.handle import OVER
from tenure.client.job import Call
from tenure.client.overview import Stats
from tenure.client.rate_meter import RateMeter
from tenure.client.report.words import gist, inline
from tenure.client.status import JobStatus
from tenure.model.states import LIVE, State
from tenure.simulate.catalogue import JOBS, app

POLL_EVERY = 0.2  # seconds
STALLED = 60.0  # seconds without any change, after which it stops waiting
WAIT_AFTER_STOP = 10.0  # seconds for the remaining jobs after Ctrl-C
MAX_BATCH = 200
INCIDENTS = 4
SKEW = timedelta(minutes=1)

ENDS = {"retry": "retries", "failed": "failed", "canceled": "canceled", "dead_letter": "dead letters"}

GROUPS = {name: str(job.__module__).rpartition("kinds_")[2].replace("_", " ") for name, job in JOBS.items()}
"""The group of each kind: the name of the module that defines it."""


def group_of(_queue: str, kind: str) -> str | None:
    return GROUPS.get(kind)


@dataclass
class Simulation:
    display: Display
    client: Client
    calls: Iterator[Call[Any]]
    rate: float
    """Jobs per second; 0: as fast as possible."""
    count: int | None
    seconds: float | None
    check: Callable[[], None]
    """Raises when the workers have exited."""
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    """Set by Ctrl-C: no more jobs are enqueued, and waiting for the others ends after 10 s."""
    sent: dict[UUID, str] = field(default_factory=dict)
    enqueued: int = 0
    _since: datetime | None = None
    _rate: RateMeter = field(default_factory=RateMeter)
    _before: tuple[Tally, Counter[str]] = field(default_factory=lambda: (Counter(), Counter()))
    _last_change: tuple[object, float] = (None, 0.0)
    _workers: dict[UUID, int] = field(default_factory=dict)
    _incidents: deque[str] = field(default_factory=lambda: deque(maxlen=INCIDENTS))
    _reported: set[UUID] = field(default_factory=set)

    async def run(self) -> list[JobStatus]:
        """All jobs that may belong to this simulation, once they have ended or nothing changes any more."""
        stats = await self.client.stats()
        self._before = tally(stats, group_of), outcomes(stats, group_of)
        self._workers = {worker.id: worker.pid for worker in await self.client.workers()}
        await self._send()
        await self._wait()
        return await self._find_jobs()

    # Enqueuing

    async def _send(self) -> None:
        began = time.monotonic()
        while not self.stop.is_set() and (due := self._due(time.monotonic() - began)) is not None:
            handles = await app.enqueue_many(islice(self.calls, due))
            self.enqueued += len(handles)
            self.sent.update({handle.id: handle.kind for handle in handles})
            if self._since is None and handles:
                self._since = (await handles[0].status()).enqueued_at - SKEW
            await self._refresh()
            if self.rate:
                await asyncio.sleep(min(POLL_EVERY, max(1 / self.rate, 0.02)))

    def _due(self, elapsed: float) -> int | None:
        """How many to enqueue now; None when all have been."""
        left = None if self.count is None else self.count - self.enqueued
        if left == 0 or (self.seconds is not None and elapsed >= self.seconds):
            return None
        wanted = MAX_BATCH if not self.rate else int(elapsed * self.rate) + 1 - self.enqueued
        return max(0, min(wanted, MAX_BATCH, MAX_BATCH if left is None else left))

    # Waiting

    async def _wait(self) -> None:
        deadline: float | None = None
        while await self._left():
            if self.stop.is_set():
                deadline = deadline or time.monotonic() + WAIT_AFTER_STOP
            if time.monotonic() > (deadline or self._last_change[1] + STALLED):
                return
            await asyncio.sleep(POLL_EVERY)
            await self._refresh()

    async def _left(self) -> bool:
        if self._since is None:
            return False
        living = LIVE - {State.DEAD_LETTER}
        page = await self.client.list(state=list(living), enqueued_after=self._since, limit=50)
        return page.next is not None or any(job.kind in JOBS for job in page.jobs)

    async def _find_jobs(self) -> list[JobStatus]:
        if self._since is None:
            return []
        found = {job.id: job async for job in self.client.iterate(enqueued_after=self._since) if job.kind in JOBS}
        # A key that was used before the start leads to an older job.
        for job_id in self.sent.keys() - found.keys():
            if (job := await self.client.find(job_id)) is not None:
                found[job_id] = job
        return list(found.values())

    # Displaying

    async def _refresh(self) -> None:
        self.check()
        stats = await self.client.stats()
        await self._note_exits()
        await self._note_failures()
        self.display.update(self._state(stats))

    def _state(self, stats: Stats) -> DisplayState:
        counted = tally(stats, group_of)
        counted.subtract(self._before[0])
        ended = outcomes(stats, group_of)
        ended.subtract(self._before[1])
        now = (tuple(sorted(counted.items())), tuple(sorted(ended.items())))
        if now != self._last_change[0]:
            self._last_change = now, time.monotonic()
        rate = self._rate.update(sum(count for (_, part), count in counted.items() if part == "done"))
        sent = f"{self.enqueued:,}" + (f" of {self.count:,}" if self.count else "")
        facts = [("sent", sent), ("jobs/s", f"{rate:,.0f}"), ("worker processes", str(len(self._workers)))]
        ends = [(word, f"{ended[name]:,}") for name, word in ENDS.items()]
        names = list(dict.fromkeys(GROUPS.values()))
        return DisplayState(heading="kinds", counts=rows(counted, names), facts=[facts, ends], notes=self._notes())

    def _notes(self) -> list[str]:
        lines = [f"  {line}" for line in self._incidents]
        return ["", *lines, *[""] * (INCIDENTS - len(lines))]

    async def _note_exits(self) -> None:
        """Worker processes that have disappeared since the last refresh."""
        workers = {worker.id: worker.pid for worker in await self.client.workers() if worker.alive}
        for worker_id in self._workers.keys() - workers.keys():
            self._incidents.append(f"worker process {self._workers[worker_id]} exited")
        self._workers = workers

    async def _note_failures(self) -> None:
        """The newest dead letters and failures."""
        if self._since is None:
            return
        page = await self.client.list(state=[State.DEAD_LETTER, State.FAILED], enqueued_after=self._since, limit=INCIDENTS)
        for job in reversed(page.jobs):
            if job.id not in self._reported and job.kind in JOBS and job.state in OVER:
                self._reported.add(job.id)
                self._incidents.append(f"{job.state.replace('_', ' ')}: {job.kind}: {inline(gist(job.error or ''), 90)}")
