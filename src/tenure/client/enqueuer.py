"""Concurrent enqueues share a statement: at once when idle, together while one is on its way."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from tenure.model.errors import StoreUnavailable
from tenure.pacing import backoff
from tenure.store import jobs
from tenure.store.faults import Refused
from tenure.store.groups import send_or_halve
from tenure.store.link import Link

LARGEST_GROUP = 1000

PATIENCE = 30.0
"""Seconds for which an enqueue is repeated while PostgreSQL is away, before the caller is told."""


Met = dict[str, tuple[UUID, bool]]
"""By the id asked for: the job with the same key that was there before, and whether its input is another."""


def met_in(rows: list[tuple[Any, ...]]) -> Met:
    """A job that stands for itself was written by an earlier, unanswered call of our own."""
    return {asked: (UUID(stands), differs) for asked, stands, differs in rows if stands != asked}


@dataclass(slots=True, eq=False)
class Batch:
    """The jobs of one call: all of them or none."""

    texts: list[str]
    done: asyncio.Future[Met] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class Enqueuer:
    def __init__(self, link: Link) -> None:
        self._link = link
        self._waiting: list[Batch] = []
        self._writer: asyncio.Task[None] | None = None

    async def enqueue(self, texts: list[str]) -> Met:
        """Returns when the jobs are durable. A caller that is cancelled meanwhile does not take others along."""
        batch = Batch(texts)
        self._waiting.append(batch)
        if self._writer is None:
            self._writer = asyncio.create_task(self._write_all())
        return await batch.done

    async def _write_all(self) -> None:
        try:
            while self._waiting:
                await send_or_halve(self._take(), self._write, self._refuse)
        finally:
            self._writer = None

    def _take(self) -> list[Batch]:
        size = 0
        for number, batch in enumerate(self._waiting):
            size += len(batch.texts)
            if size > LARGEST_GROUP and number:
                break
        else:
            number = len(self._waiting)
        group, self._waiting = self._waiting[:number], self._waiting[number:]
        return group

    async def _write(self, group: list[Batch]) -> None:
        text = "[" + ",".join([text for batch in group for text in batch.texts]) + "]"
        try:
            met = await self._send(text)
        except Refused:
            raise
        except BaseException as error:
            self._fail(group, error if isinstance(error, Exception) else StoreUnavailable("the event loop ended"))
            if not isinstance(error, Exception):
                raise
        else:
            for batch in group:
                if not batch.done.done():
                    batch.done.set_result(met)

    async def _send(self, text: str) -> Met:
        began, failures = time.monotonic(), 0
        while True:
            try:
                # After a failure it is unknown whether the commit happened: the ids are the same, so asking again is safe.
                return met_in(await self._link.fetch(jobs.enqueue(text, again=failures > 0)))
            except StoreUnavailable:
                failures += 1
                if time.monotonic() - began > PATIENCE:
                    raise
                await asyncio.sleep(backoff(failures))

    async def _refuse(self, batch: Batch, error: Refused) -> None:
        self._fail([batch], error)

    def _fail(self, group: list[Batch], error: Exception) -> None:
        for batch in group:
            if not batch.done.done():
                batch.done.set_exception(error)
