"""PostgreSQL is stopped immediately and started again, under a steady load of jobs."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import count

from tenure import StoreUnavailable
from tenure.chaos import jobs
from tenure.chaos.drills.environment import DrillEnvironment, DrillResult, open_environment, until

TIMES = 5
BEFORE = 5.0
"""Seconds over which the rate before the restart is measured."""
SPAN = 1.0
AFTER = 8.0
GOAL = 5.0
SHARE = 0.95
RATE = 1000  # jobs a second
START_TIMEOUT = 30.0


async def restarts(show: Callable[[str], None]) -> DrillResult:
    async with open_environment() as environment:
        environment.start_worker("--processes", "2", "--concurrency", "50")
        await until(lambda: environment.ready_processes() == 2, within=START_TIMEOUT)
        over = asyncio.Event()
        feeding = asyncio.create_task(_feed(over))
        await asyncio.sleep(BEFORE)
        took = []
        for _ in range(TIMES):
            seconds, rate = await _restart(environment)
            took.append(seconds)
            show(f"{rate:,.0f} jobs/s before; {SHARE:.0%} of that {seconds:.1f} s after the server was up")
        over.set()
        await feeding
    measured = f"at {RATE:,} jobs/s, worst of {TIMES}: {max(took):.1f} s"
    return DrillResult(
        "restarts",
        f"at least {SHARE:.0%} of the previous rate within {GOAL:g} s after the server is up",
        measured,
        max(took) <= GOAL,
    )


async def _feed(over: asyncio.Event) -> None:
    """Enqueues at a constant rate, like callers that do not know about the restart."""
    numbers = count(1)
    enqueued, began = 0, time.monotonic()
    while not over.is_set():
        due = int((time.monotonic() - began) * RATE) - enqueued
        if due > 0:
            with suppress(StoreUnavailable):
                await jobs.app.enqueue_many([jobs.quick.call(next(numbers)) for _ in range(min(due, RATE))])
            enqueued += due
        await asyncio.sleep(0.02)


async def _restart(environment: DrillEnvironment) -> tuple[float, float]:
    """Seconds after the server is up until the rate is what it was before, and that rate."""
    rate = await _rate(environment, BEFORE)
    pid = environment.server.status().pid
    assert pid is not None
    os.kill(pid, signal.SIGQUIT)
    await asyncio.to_thread(environment.server.start)
    up = time.monotonic()
    while time.monotonic() - up < AFTER:
        began = time.monotonic()
        if await _rate(environment, SPAN) >= SHARE * rate:
            return began - up, rate
    return AFTER, rate


async def _rate(environment: DrillEnvironment, seconds: float) -> float:
    began, before = time.monotonic(), environment.count_lines() // 2
    await asyncio.sleep(seconds)
    return (environment.count_lines() // 2 - before) / (time.monotonic() - began)
