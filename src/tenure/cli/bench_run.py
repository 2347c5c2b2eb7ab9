"""Runs the measurements of `tenure bench`, with one worker process as `tenure worker` starts it."""

from __future__ import annotations

import asyncio
import os
import platform
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from tenure.cli.worker_process import WorkerProcess, worker_process
from tenure.settings import Settings
from tenure.simulate import bench
from tenure.simulate.bench import BenchFigures, BenchTimes
from tenure.store.throwaway import throwaway_schema

APP = "tenure.simulate.bench:app"
SCHEMA_PREFIX = "tenure_bench"
PATIENCE = 60.0  # seconds for the worker to start
POLL_EVERY = 0.05  # seconds


@dataclass(frozen=True, slots=True)
class BenchResult:
    postgresql: str
    python: str
    cores: int
    figures: BenchFigures

    def to_json(self) -> dict[str, Any]:
        about = {"postgresql": self.postgresql, "python": self.python, "cores": self.cores}
        return {**about, **self.figures.to_json()}


@dataclass(frozen=True, slots=True)
class BenchRun:
    settings: Settings
    """Of the database. The schema is a new one."""
    log: Path
    """For the output of the worker."""
    seconds: float
    concurrency: int
    report: Callable[[str], None]

    async def run(self) -> BenchResult:
        _cancel_on_signals()
        try:
            return await self._in_schema()
        except asyncio.CancelledError:
            raise click.Abort from None

    async def _in_schema(self) -> BenchResult:
        async with throwaway_schema(self.settings.database, SCHEMA_PREFIX) as target:
            self.report(f"measuring for {self.seconds:g} s in the new schema {target.schema}, which is dropped at the end")
            bench.app.configure(dsn=self.settings.dsn, schema=target.schema)
            try:
                figures = await self._measure(Settings.load(dsn=self.settings.dsn, schema=target.schema))
                postgresql = await bench.server_version(target)
            finally:
                await bench.app.close()
        return BenchResult(postgresql, platform.python_version(), os.cpu_count() or 1, figures)

    async def _measure(self, settings: Settings) -> BenchFigures:
        times = BenchTimes.of(self.seconds)
        await bench.pause_backlog()
        one_by_one = await bench.enqueue_one_by_one(times.one_by_one)
        in_bulk, last = await bench.enqueue_in_bulk(times.in_bulk)
        with worker_process(settings, APP, self.log, processes=1, concurrency=self.concurrency) as worker:
            await _wait_for(worker)
            wakeup = await bench.measure_wakeups(times.wakeups)
            drain = await bench.drain(last, times.drain, self.concurrency, worker.check)
        return BenchFigures(enqueue_one_by_one=one_by_one, enqueue_in_bulk=in_bulk, wakeup=wakeup, drain=drain)


async def _wait_for(worker: WorkerProcess) -> None:
    deadline = time.monotonic() + PATIENCE
    while not await bench.has_worker():
        worker.check()
        if time.monotonic() > deadline:
            raise click.ClickException(f"the worker did not start within {PATIENCE:.0f} s\n{worker.log_tail}")
        await asyncio.sleep(POLL_EVERY)


def _cancel_on_signals() -> None:
    """So that the schema is dropped. Ctrl-C does the same."""
    task = asyncio.current_task()
    assert task is not None
    for number in (signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
