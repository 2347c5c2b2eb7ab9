"""The acts of `tenure demo`: work, a kill -9, a poison pill, a burst, a dead letter that gets a second chance."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any
from uuid import UUID

import click
from rich.markup import escape

from tenure.cli.counts import outcomes, rows, tally
from tenure.cli.crew import Crew
from tenure.cli.pace import Pace
from tenure.cli.stage import FRAMES, Scene, Stage, Track
from tenure.client.client import Client
from tenure.client.handle import Handle
from tenure.client.job import Call
from tenure.client.overview import WorkerStatus
from tenure.client.status import JobStatus
from tenure.model.states import State
from tenure.simulate import demo as shop

ROOM = 3
PATIENCE = 45.0  # seconds for anything to come true
CROWD = 2000
ENOUGH_TO_DO = 3  # jobs in a process, for its end to matter
CARD_AT, KILL_AT, PILL_AT, LEAST = 1.0, 3.0, 5.5, 10.0  # seconds after the first job


@dataclass
class Show:
    """What the acts share, and what they leave to be counted."""

    stage: Stage
    crew: Crew
    client: Client
    handles: list[Handle[Any]] = field(default_factory=list)
    survivors: list[UUID] = field(default_factory=list)
    """Jobs that were running in the process that was killed."""
    talking: dict[Handle[Any], str] = field(default_factory=dict)
    """Jobs that tell how far they are, in a few words."""
    quiet: bool = False
    """No long jobs are handed in: one that was in two crashes is run alone, and long ones would queue for that."""
    over: bool = False
    """Nothing more is handed in."""
    pace: Pace = field(default_factory=Pace)
    processes: int = 0
    """How many the poison pill took down."""

    async def hand_in(self, calls: list[Call[Any]]) -> list[Handle[Any]]:
        handles = await shop.app.enqueue_many(calls)
        self.handles += handles
        for call, handle in zip(calls, handles, strict=True):
            if handle.kind in shop.LONG:
                self.talking[handle] = shop.label(handle.kind, json.loads(call.input))
        return handles

    async def film(self) -> None:
        while True:
            self.crew.check()
            self.stage.show(await self.scene(ROOM))
            await asyncio.sleep(1 / FRAMES)

    async def scene(self, room: int = 0) -> Scene:
        stats = await self.client.stats()
        found = tally(stats, lambda queue, _: queue)
        ended = outcomes(stats, lambda queue, _: queue)
        facts = [
            ("jobs/s", f"{self.pace.mark(sum(n for (_, part), n in found.items() if part == 'done')):,.0f}"),
            ("worker processes", str(sum(worker.alive for worker in await self.client.workers()))),
            ("retries", f"{ended['retry']}"),
            ("dead letters", f"{ended['dead_letter']}"),
        ]
        tracks = await self._tracks(room)
        return Scene(heading="queue", rows=rows(found, shop.QUEUES), tracks=tracks, room=room, facts=[facts] if room else ())

    async def _tracks(self, room: int) -> list[Track]:
        found: list[Track] = []
        for handle, label in list(self.talking.items()):
            if len(found) >= room:
                break
            progress = await handle.progress()
            if progress is not None and progress.percent >= 100:
                del self.talking[handle]
            elif progress is not None:
                found.append(Track(label, progress.percent, progress.message or ""))
        return found

    async def until(self, look: Callable[[], Awaitable[object]], otherwise: str) -> float:
        """Waits until it is so, and gives the seconds on the clock then."""
        began = time.monotonic()
        while not await look():
            if time.monotonic() - began > PATIENCE:
                raise click.ClickException(f"{otherwise} within {PATIENCE:.0f} s\n{self.crew.last_words}")
            await asyncio.sleep(0.01)
        return time.monotonic()


async def play(show: Show) -> None:
    """All acts, filmed. Every job has come to an end when this returns."""
    try:
        async with asyncio.TaskGroup() as tasks:
            filming = tasks.create_task(show.film())
            streaming = tasks.create_task(stream(show))
            await acts(show)
            await streaming
            await show.until(lambda: nothing_left(show), "not every job came to an end")
            filming.cancel()
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from None
    show.stage.show(await show.scene())
    show.stage.freeze()


async def stream(show: Show) -> None:
    began = time.monotonic()
    for tick in count():
        if show.over:
            return
        await asyncio.sleep(max(0.0, began + tick * shop.TICK - time.monotonic()))
        await show.hand_in([call for call in shop.stream(tick) if not (show.quiet and call.kind in shop.LONG)])


async def acts(show: Show) -> None:
    began = time.monotonic()
    show.stage.say("jobs are coming in, some 40 a second")
    [invoice] = await show.hand_in([shop.send_invoice.call(1042, f"ada@{shop.NOWHERE}")])
    for at, act in ((CARD_AT, retried), (KILL_AT, killed), (PILL_AT, poisoned)):
        await asyncio.sleep(max(0.0, began + at - time.monotonic()))
        await act(show)
    await crowded(show)
    await replayed(show, invoice)
    await asyncio.sleep(max(0.0, began + LEAST - time.monotonic()))
    show.over = True


async def nothing_left(show: Show) -> bool:
    return not (await show.client.stats()).by_state.keys() - {State.DEAD_LETTER}


async def retried(show: Show) -> None:
    def cards() -> list[Handle[Any]]:
        return [handle for handle in show.handles if handle.kind == "charge_card"]

    async def one_came_in() -> bool:
        return bool(cards())

    await show.until(one_came_in, "no card came in")
    said = await cards()[0].result(timeout=PATIENCE)
    show.stage.say(f"the bank did not answer; tried again: {escape(said)}")


async def killed(show: Show) -> None:
    """Kill -9 of a busy worker process, and the time until its jobs are back and run again."""
    victim, held = await _busiest(show)
    began = time.monotonic()
    os.kill(victim.pid, signal.SIGKILL)
    show.stage.say(f"[red]kill -9[/] of worker process {victim.pid}, which is running {len(held)} jobs")

    async def buried() -> bool:
        return victim.id not in {worker.id for worker in await show.client.workers()}

    async def running_again() -> bool:
        return not any([await _is_down(show, job) for job in held])

    back_at = await show.until(buried, "the dead process was not noticed")
    again_at = await show.until(running_again, "its jobs did not run again")
    show.quiet = True
    show.survivors += [job.id for job in held]
    back, again = f"[green]{span(back_at - began)}[/]", f"[green]{span(again_at - began)}[/]"
    show.stage.say(f"its jobs were given back after {back}, and all run again after {again}")


async def _busiest(show: Show) -> tuple[WorkerStatus, list[JobStatus]]:
    """The worker process with most to do, and what it runs."""
    held: dict[UUID, list[JobStatus]] = defaultdict(list)

    async def busy() -> bool:
        held.clear()
        for job in (await show.client.list(state=State.RUNNING, limit=100)).jobs:
            if job.worker_id is not None:
                held[job.worker_id].append(job)
        return max(map(len, held.values()), default=0) >= ENOUGH_TO_DO

    await show.until(busy, "no worker had anything to do")
    worker_id, jobs = max(held.items(), key=lambda item: len(item[1]))
    return next(worker for worker in await show.client.workers() if worker.id == worker_id), jobs


async def _is_down(show: Show, before: JobStatus) -> bool:
    """It was cut off, and has not been run again."""
    now = await show.client.find(before.id)
    return now is None or (now.crashes > before.crashes and now.fence == before.fence)


async def poisoned(show: Show) -> None:
    async def no_long_ones() -> bool:
        return not any(count.kind in shop.LONG for count in (await show.client.stats()).live)

    await show.until(no_long_ones, "the long jobs did not end")
    [pill] = await show.hand_in([shop.open_upload.call("holiday.tiff")])
    show.stage.say("a [red]poison pill[/]: holiday.tiff takes down whatever process opens it")

    async def set_aside() -> bool:
        return (await pill.status()).state == State.DEAD_LETTER

    await show.until(set_aside, "the poison pill was not set aside")
    show.quiet = False
    found = await pill.status()
    show.processes += found.crashes
    show.stage.say(f"it took down {found.crashes} processes, and is set aside; their other jobs are back")


async def crowded(show: Show) -> None:
    calls = [shop.send_newsletter.call(reader) for reader in range(CROWD)]
    began = time.monotonic()
    await show.hand_in(calls)
    in_at = time.monotonic()

    async def all_sent() -> bool:
        stats = await show.client.stats()
        return sum(count.jobs for count in stats.finished if count.kind == "send_newsletter") >= CROWD

    sent_at = await show.until(all_sent, "the newsletters were not sent")
    show.stage.say(f"{CROWD:,} newsletters handed in within {span(in_at - began)}, and sent {span(sent_at - in_at)} later")


async def replayed(show: Show, invoice: Handle[Any]) -> None:
    async def dead() -> bool:
        return (await invoice.status()).state == State.DEAD_LETTER

    await show.until(dead, "the invoice with the wrong address did not become a dead letter")
    error = ((await invoice.status()).error or "").strip().rpartition("\n")[2]
    show.stage.say(f"a dead letter: {escape(error)}")
    await show.client.replay(invoice.id, input={"order": 1042, "address": "ada@example.org"}, by="demo")
    show.stage.say(f"mended and replayed: {escape(await invoice.result(timeout=PATIENCE))}")


def span(seconds: float) -> str:
    if seconds < 0.01:
        return f"{seconds * 1000:.1f} ms"
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
