"""Sends the events for which the workflows of a campaign wait: some before a workflow waits, some later."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from heapq import heappop, heappush
from random import Random
from typing import Any, NamedTuple

from tenure.chaos import jobs
from tenure.chaos.ledger import ClientCall
from tenure.chaos.workflows import EVENT

LATEST = 5.0  # seconds after the request
AGAIN_AFTER = 0.5
SECOND_EVENTS = 0.2
"""For this share of workflows, another event with the same key follows. The first one counts."""

LOOK_EVERY = 0.02

Answer = Callable[[Awaitable[Any]], Awaitable[tuple[str, Any]]]


class PlannedEvent(NamedTuple):
    at: float
    n: int
    first: bool

    @property
    def payload(self) -> str:
        return f"{'first' if self.first else 'second'} {self.n}"


class EventSender:
    def __init__(self, random: Random, answer: Answer, record: Callable[[ClientCall], None]) -> None:
        """`answer(call)` waits for a call; `record(call)` writes it into the ledger."""
        self._random = random
        self._answer = answer
        self._record = record
        self._planned: list[PlannedEvent] = []

    def add(self, n: int) -> None:
        """A workflow of this request may wait for its event."""
        self._plan(n, first=True, within=self._random.choice([0.05, LATEST, LATEST]))

    async def run(self, finished: asyncio.Event) -> None:
        """Until `finished`; then what is left is sent once, without waiting for its time."""
        async with asyncio.TaskGroup() as tasks:
            while not finished.is_set():
                while self._planned and self._planned[0].at <= time.monotonic():
                    tasks.create_task(self._send(heappop(self._planned)))
                await asyncio.sleep(LOOK_EVERY)
        for planned in list(self._planned):
            await self._send(planned)

    async def _send(self, planned: PlannedEvent) -> None:
        began = time.time()
        answer, _ = await self._answer(jobs.app.emit(EVENT, planned.payload, key=planned.n))
        self._record(ClientCall("emit", began, time.time(), answer, reply=str(planned.n)))
        if answer != "ok" and planned.first:
            self._plan(planned.n, first=True, within=AGAIN_AFTER)
        elif planned.first and self._random.random() < SECOND_EVENTS:
            self._plan(planned.n, first=False, within=AGAIN_AFTER)

    def _plan(self, n: int, *, first: bool, within: float) -> None:
        heappush(self._planned, PlannedEvent(time.monotonic() + self._random.uniform(0, within), n, first))
