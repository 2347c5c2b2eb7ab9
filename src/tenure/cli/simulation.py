"""A simulation under way: jobs go out at their rate, and are watched until the last of them is over."""

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

from tenure.cli.counts import Tally, outcomes, rows, tally
from tenure.cli.pace import Pace
from tenure.cli.stage import Scene, Stage
from tenure.client.client import Client
from tenure.client.handle import OVER
from tenure.client.job import Call
from tenure.client.overview import Stats
from tenure.client.report.words import gist, inline
from tenure.client.status import JobStatus
from tenure.model.states import LIVE, State
from tenure.simulate.catalogue import JOBS, app

LOOK_EVERY = 0.2  # seconds
STALLED = 60.0  # seconds in which nothing moves: then the rest is not waited for
BRIEFLY = 10.0  # seconds for the rest after Ctrl-C
MOST_AT_ONCE = 200
INCIDENTS = 4
SKEW = timedelta(minutes=1)

ENDS = {"retry": "retries", "failed": "failed", "canceled": "canceled", "dead_letter": "dead letters"}

FAMILIES = {name: str(job.__module__).rpartition("kinds_")[2].replace("_", " ") for name, job in JOBS.items()}
"""The shelf of the catalogue that each kind stands on."""


def family(_queue: str, kind: str) -> str | None:
    return FAMILIES.get(kind)


@dataclass
class Simulation:
    stage: Stage
    client: Client
    calls: Iterator[Call[Any]]
    rate: float
    """Jobs a second; 0 for as fast as they are taken."""
    count: int | None
    seconds: float | None
    check: Callable[[], None]
    """Raises when there is no use in going on."""
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    """Set by Ctrl-C: nothing more is sent, and the rest is waited for only briefly."""
    sent: dict[UUID, str] = field(default_factory=dict)
    handed_in: int = 0
    _since: datetime | None = None
    _pace: Pace = field(default_factory=Pace)
    _before: tuple[Tally, Counter[str]] = field(default_factory=lambda: (Counter(), Counter()))
    _moved: tuple[object, float] = (None, 0.0)
    _workers: dict[UUID, int] = field(default_factory=dict)
    _incidents: deque[str] = field(default_factory=lambda: deque(maxlen=INCIDENTS))
    _told: set[UUID] = field(default_factory=set)

    async def run(self) -> list[JobStatus]:
        """All jobs that may be of this simulation, once they are over or nothing moves any more."""
        stats = await self.client.stats()
        self._before = tally(stats, family), outcomes(stats, family)
        self._workers = {worker.id: worker.pid for worker in await self.client.workers()}
        await self._send()
        await self._wait()
        return await self._found()

    # Sending

    async def _send(self) -> None:
        began = time.monotonic()
        while not self.stop.is_set() and (due := self._due(time.monotonic() - began)) is not None:
            handles = await app.enqueue_many(islice(self.calls, due))
            self.handed_in += len(handles)
            self.sent.update({handle.id: handle.kind for handle in handles})
            if self._since is None and handles:
                self._since = (await handles[0].status()).enqueued_at - SKEW
            await self._look()
            if self.rate:
                await asyncio.sleep(min(LOOK_EVERY, max(1 / self.rate, 0.02)))

    def _due(self, elapsed: float) -> int | None:
        """How many are to be sent now; None when it is over."""
        left = None if self.count is None else self.count - self.handed_in
        if left == 0 or (self.seconds is not None and elapsed >= self.seconds):
            return None
        wanted = MOST_AT_ONCE if not self.rate else int(elapsed * self.rate) + 1 - self.handed_in
        return max(0, min(wanted, MOST_AT_ONCE, MOST_AT_ONCE if left is None else left))

    # Waiting

    async def _wait(self) -> None:
        deadline: float | None = None
        while await self._left():
            if self.stop.is_set():
                deadline = deadline or time.monotonic() + BRIEFLY
            if time.monotonic() > (deadline or self._moved[1] + STALLED):
                return
            await asyncio.sleep(LOOK_EVERY)
            await self._look()

    async def _left(self) -> bool:
        if self._since is None:
            return False
        living = LIVE - {State.DEAD_LETTER}
        page = await self.client.list(state=list(living), enqueued_after=self._since, limit=50)
        return page.next is not None or any(job.kind in JOBS for job in page.jobs)

    async def _found(self) -> list[JobStatus]:
        if self._since is None:
            return []
        found = {job.id: job async for job in self.client.iterate(enqueued_after=self._since) if job.kind in JOBS}
        # A key that was taken before this began leads to an older job.
        for job_id in self.sent.keys() - found.keys():
            if (job := await self.client.find(job_id)) is not None:
                found[job_id] = job
        return list(found.values())

    # Showing

    async def _look(self) -> None:
        self.check()
        stats = await self.client.stats()
        await self._note_deaths()
        await self._note_troubles()
        self.stage.show(self._scene(stats))

    def _scene(self, stats: Stats) -> Scene:
        counted = tally(stats, family)
        counted.subtract(self._before[0])
        ended = outcomes(stats, family)
        ended.subtract(self._before[1])
        now = (tuple(sorted(counted.items())), tuple(sorted(ended.items())))
        if now != self._moved[0]:
            self._moved = now, time.monotonic()
        pace = self._pace.mark(sum(count for (_, part), count in counted.items() if part == "done"))
        sent = f"{self.handed_in:,}" + (f" of {self.count:,}" if self.count else "")
        facts = [("sent", sent), ("jobs/s", f"{pace:,.0f}"), ("worker processes", str(len(self._workers)))]
        ends = [(word, f"{ended[name]:,}") for name, word in ENDS.items()]
        names = list(dict.fromkeys(FAMILIES.values()))
        return Scene(heading="kinds", rows=rows(counted, names), facts=[facts, ends], notes=self._notes())

    def _notes(self) -> list[str]:
        lines = [f"  {line}" for line in self._incidents]
        return ["", *lines, *[""] * (INCIDENTS - len(lines))]

    async def _note_deaths(self) -> None:
        """Worker processes that were there at the last look."""
        workers = {worker.id: worker.pid for worker in await self.client.workers() if worker.alive}
        for worker_id in self._workers.keys() - workers.keys():
            self._incidents.append(f"worker process {self._workers[worker_id]} is gone")
        self._workers = workers

    async def _note_troubles(self) -> None:
        """The newest dead letters and failures."""
        if self._since is None:
            return
        page = await self.client.list(state=[State.DEAD_LETTER, State.FAILED], enqueued_after=self._since, limit=INCIDENTS)
        for job in reversed(page.jobs):
            if job.id not in self._told and job.kind in JOBS and job.state in OVER:
                self._told.add(job.id)
                self._incidents.append(f"{job.state.replace('_', ' ')}: {job.kind}: {inline(gist(job.error or ''), 90)}")
