"""The steps of `tenure demo`: steady work, a retry, a kill -9, a poison pill, a burst, a dead letter that is replayed."""

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

from tenure.cli.display_counts import outcomes, rows, tally
from tenure.cli.live_display import FRAMES, Display, DisplayState, ShownProgress
from tenure.cli.worker_process import WorkerProcess
from tenure.client.client import Client
from tenure.client.handle import Handle
from tenure.client.job import Call
from tenure.client.overview import WorkerStatus
from tenure.client.rate_meter import RateMeter
from tenure.client.status import JobStatus
from tenure.model.states import State
from tenure.simulate import demo as shop

PROGRESS_ROWS = 3
PATIENCE = 45.0  # seconds for a condition to become true
BURST = 2000
BUSY = 3  # running jobs in the process that is killed
RETRY_AT, KILL_AT, PILL_AT, LEAST = 1.0, 3.0, 5.5, 10.0  # seconds after the first job


@dataclass
class DemoRun:
    """What the steps share, and what they leave for the summary."""

    display: Display
    workers: WorkerProcess
    client: Client
    handles: list[Handle[Any]] = field(default_factory=list)
    crashed: list[UUID] = field(default_factory=list)
    """Jobs that were running in the process that was killed."""
    with_progress: dict[Handle[Any], str] = field(default_factory=dict)
    """Jobs that report progress, with a label for each."""
    no_long_jobs: bool = False
    """A job that was in two crashes runs alone, and long jobs would have to wait for that."""
    finished: bool = False
    """No more jobs are enqueued."""
    rate: RateMeter = field(default_factory=RateMeter)
    processes: int = 0
    """How many the poison pill crashed."""

    async def enqueue(self, calls: list[Call[Any]]) -> list[Handle[Any]]:
        handles = await shop.app.enqueue_many(calls)
        self.handles += handles
        for call, handle in zip(calls, handles, strict=True):
            if handle.kind in shop.LONG:
                self.with_progress[handle] = shop.label(handle.kind, json.loads(call.input))
        return handles

    async def keep_display_current(self) -> None:
        while True:
            self.workers.check()
            self.display.update(await self.state(PROGRESS_ROWS))
            await asyncio.sleep(1 / FRAMES)

    async def state(self, progress_rows: int = 0) -> DisplayState:
        stats = await self.client.stats()
        found = tally(stats, lambda queue, _: queue)
        ended = outcomes(stats, lambda queue, _: queue)
        facts = [
            ("jobs/s", f"{self.rate.update(sum(n for (_, part), n in found.items() if part == 'done')):,.0f}"),
            ("worker processes", str(sum(worker.alive for worker in await self.client.workers()))),
            ("retries", f"{ended['retry']}"),
            ("dead letters", f"{ended['dead_letter']}"),
        ]
        return DisplayState(
            heading="queue",
            counts=rows(found, shop.QUEUES),
            progress=await self._progress(progress_rows),
            progress_rows=progress_rows,
            facts=[facts] if progress_rows else (),
        )

    async def _progress(self, most: int) -> list[ShownProgress]:
        found: list[ShownProgress] = []
        for handle, label in list(self.with_progress.items()):
            if len(found) >= most:
                break
            progress = await handle.progress()
            if progress is not None and progress.percent >= 100:
                del self.with_progress[handle]
            elif progress is not None:
                found.append(ShownProgress(label, progress.percent, progress.message or ""))
        return found

    async def until(self, condition: Callable[[], Awaitable[object]], otherwise: str) -> float:
        """Waits until the condition is true, and returns the time on the monotonic clock."""
        began = time.monotonic()
        while not await condition():
            if time.monotonic() - began > PATIENCE:
                raise click.ClickException(f"{otherwise} within {PATIENCE:.0f} s\n{self.workers.log_tail}")
            await asyncio.sleep(0.01)
        return time.monotonic()


async def run_steps(run: DemoRun) -> None:
    """Returns when all steps are done and every job has ended."""
    try:
        async with asyncio.TaskGroup() as tasks:
            displaying = tasks.create_task(run.keep_display_current())
            streaming = tasks.create_task(stream(run))
            await steps(run)
            await streaming
            await run.until(lambda: nothing_left(run), "not every job ended")
            displaying.cancel()
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from None
    run.display.update(await run.state())
    run.display.stop()


async def stream(run: DemoRun) -> None:
    began = time.monotonic()
    for tick in count():
        if run.finished:
            return
        await asyncio.sleep(max(0.0, began + tick * shop.TICK - time.monotonic()))
        await run.enqueue([call for call in shop.stream(tick) if not (run.no_long_jobs and call.kind in shop.LONG)])


async def steps(run: DemoRun) -> None:
    began = time.monotonic()
    run.display.event("enqueuing about 40 jobs per second")
    [invoice] = await run.enqueue([shop.send_invoice.call(1042, f"ada@{shop.WRONG_DOMAIN}")])
    for at, step in ((RETRY_AT, show_retry), (KILL_AT, kill_process), (PILL_AT, enqueue_poison_pill)):
        await asyncio.sleep(max(0.0, began + at - time.monotonic()))
        await step(run)
    await enqueue_burst(run)
    await replay_dead_letter(run, invoice)
    await asyncio.sleep(max(0.0, began + LEAST - time.monotonic()))
    run.finished = True


async def nothing_left(run: DemoRun) -> bool:
    return not (await run.client.stats()).by_state.keys() - {State.DEAD_LETTER}


async def show_retry(run: DemoRun) -> None:
    def charges() -> list[Handle[Any]]:
        return [handle for handle in run.handles if handle.kind == "charge_card"]

    async def one_enqueued() -> bool:
        return bool(charges())

    await run.until(one_enqueued, "no charge_card job was enqueued")
    result = await charges()[0].result(timeout=PATIENCE)
    run.display.event(f"retry: the bank did not answer; {escape(result)}")


async def kill_process(run: DemoRun) -> None:
    """Kills a busy worker process, and measures the time until its jobs are requeued and running again."""
    victim, held = await _busiest(run)
    began = time.monotonic()
    os.kill(victim.pid, signal.SIGKILL)
    run.display.event(f"[red]kill -9[/] of worker process {victim.pid}, which is running {len(held)} jobs")

    async def noticed() -> bool:
        return victim.id not in {worker.id for worker in await run.client.workers()}

    async def running_again() -> bool:
        return not any([await _is_waiting(run, job) for job in held])

    requeued_at = await run.until(noticed, "the killed process was not noticed")
    again_at = await run.until(running_again, "its jobs did not run again")
    run.no_long_jobs = True
    run.crashed += [job.id for job in held]
    requeued, again = f"[green]{span(requeued_at - began)}[/]", f"[green]{span(again_at - began)}[/]"
    run.display.event(f"its jobs were requeued after {requeued}, and all ran again after {again}")


async def _busiest(run: DemoRun) -> tuple[WorkerStatus, list[JobStatus]]:
    """The worker process with the most running jobs, and these jobs."""
    held: dict[UUID, list[JobStatus]] = defaultdict(list)

    async def busy() -> bool:
        held.clear()
        for job in (await run.client.list(state=State.RUNNING, limit=100)).jobs:
            if job.worker_id is not None:
                held[job.worker_id].append(job)
        return max(map(len, held.values()), default=0) >= BUSY

    await run.until(busy, f"no worker had {BUSY} running jobs")
    worker_id, jobs = max(held.items(), key=lambda item: len(item[1]))
    return next(worker for worker in await run.client.workers() if worker.id == worker_id), jobs


async def _is_waiting(run: DemoRun, before: JobStatus) -> bool:
    """It crashed with its process, and has not been claimed again."""
    now = await run.client.find(before.id)
    return now is None or (now.crashes > before.crashes and now.fence == before.fence)


async def enqueue_poison_pill(run: DemoRun) -> None:
    async def no_long_ones() -> bool:
        return not any(count.kind in shop.LONG for count in (await run.client.stats()).live)

    await run.until(no_long_ones, "the long jobs did not end")
    [pill] = await run.enqueue([shop.open_upload.call("holiday.tiff")])
    run.display.event("[red]poison pill[/]: holiday.tiff crashes every process that opens it")

    async def dead_lettered() -> bool:
        return (await pill.status()).state == State.DEAD_LETTER

    await run.until(dead_lettered, "the poison pill was not dead-lettered")
    run.no_long_jobs = False
    found = await pill.status()
    run.processes += found.crashes
    run.display.event(f"dead-lettered after {found.crashes} crashes; the jobs that ran beside it were requeued")


async def enqueue_burst(run: DemoRun) -> None:
    calls = [shop.send_newsletter.call(reader) for reader in range(BURST)]
    began = time.monotonic()
    await run.enqueue(calls)
    enqueued_at = time.monotonic()

    async def all_sent() -> bool:
        stats = await run.client.stats()
        return sum(count.jobs for count in stats.finished if count.kind == "send_newsletter") >= BURST

    sent_at = await run.until(all_sent, "the newsletters were not sent")
    run.display.event(
        f"burst: {BURST:,} newsletters enqueued in {span(enqueued_at - began)}, all sent {span(sent_at - enqueued_at)} later"
    )


async def replay_dead_letter(run: DemoRun, invoice: Handle[Any]) -> None:
    async def dead() -> bool:
        return (await invoice.status()).state == State.DEAD_LETTER

    await run.until(dead, "the invoice with the wrong address was not dead-lettered")
    error = ((await invoice.status()).error or "").strip().rpartition("\n")[2]
    run.display.event(f"dead letter: {escape(error)}")
    await run.client.replay(invoice.id, input={"order": 1042, "address": "ada@example.org"}, by="demo")
    run.display.event(f"replayed with the correct address: {escape(await invoice.result(timeout=PATIENCE))}")


def span(seconds: float) -> str:
    if seconds < 0.01:
        return f"{seconds * 1000:.1f} ms"
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
