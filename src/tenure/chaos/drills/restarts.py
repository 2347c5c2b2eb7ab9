"""PostgreSQL is stopped the hard way and started again, under a steady stream of jobs."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import count

from tenure import StoreUnavailable
from tenure.chaos import work
from tenure.chaos.drills.ground import Figure, Ground, ground, until

TIMES = 5
BEFORE = 5.0
"""Seconds over which the rate before is taken."""
SPAN = 1.0
AFTER = 8.0
GOAL = 5.0
SHARE = 0.95
OFFERED = 1000  # jobs a second
START = 30.0


async def restarts(tell: Callable[[str], None]) -> Figure:
    async with ground() as laid:
        laid.worker("--processes", "2", "--concurrency", "50")
        await until(lambda: laid.ready() == 2, within=START)
        over = asyncio.Event()
        feeding = asyncio.create_task(_feed(over))
        await asyncio.sleep(BEFORE)
        took = []
        for _ in range(TIMES):
            seconds, rate = await _restart(laid)
            took.append(seconds)
            tell(f"{rate:,.0f} jobs/s before; {SHARE:.0%} of that again {seconds:.1f} s after the server was up")
        over.set()
        await feeding
    measured = f"at {OFFERED:,} jobs/s, worst of {TIMES}: {max(took):.1f} s"
    return Figure(
        "restarts",
        f"at least {SHARE:.0%} of the rate before within {GOAL:g} s of the server being up",
        measured,
        max(took) <= GOAL,
    )


async def _feed(over: asyncio.Event) -> None:
    """At an even rate, as callers do who know nothing of restarts."""
    numbers = count(1)
    offered, began = 0, time.monotonic()
    while not over.is_set():
        due = int((time.monotonic() - began) * OFFERED) - offered
        if due > 0:
            with suppress(StoreUnavailable):
                await work.app.enqueue_many([work.quick.call(next(numbers)) for _ in range(min(due, OFFERED))])
            offered += due
        await asyncio.sleep(0.02)


async def _restart(laid: Ground) -> tuple[float, float]:
    """Seconds from the server being up until the rate is what it was, and that rate."""
    rate = await _rate(laid, BEFORE)
    pid = laid.server.status().pid
    assert pid is not None
    os.kill(pid, signal.SIGQUIT)
    await asyncio.to_thread(laid.server.start)
    up = time.monotonic()
    while time.monotonic() - up < AFTER:
        began = time.monotonic()
        if await _rate(laid, SPAN) >= SHARE * rate:
            return began - up, rate
    return AFTER, rate


async def _rate(laid: Ground, seconds: float) -> float:
    began, before = time.monotonic(), laid.lines() // 2
    await asyncio.sleep(seconds)
    return (laid.lines() // 2 - before) / (time.monotonic() - began)
