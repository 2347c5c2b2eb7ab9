"""SIGTERM under load, again and again."""

from __future__ import annotations

import asyncio
import random
import signal
import time
from collections.abc import Callable

from tenure.chaos import work
from tenure.chaos.drills.ground import Figure, Ground, ground, until

TIMES = 200
AT_ONCE = 4
GRACE = 1.0
"""Seconds. Shorter than most of the jobs, so that they are handed back."""
AFTER_GRACE = 9.0
START = 30.0

SPENT = """select count(*) filter (where attempt > 1), count(*) filter (where crashes > 0),
       count(*) filter (where fence > 1), count(*) from tenure.all_jobs"""


async def shutdowns(tell: Callable[[str], None]) -> Figure:
    took: list[float] = []
    codes: list[int] = []
    async with ground() as laid:
        over = asyncio.Event()
        feeding = asyncio.create_task(_feed(over))
        for begun in range(0, TIMES, AT_ONCE):
            ended = await asyncio.gather(*(_once(laid) for _ in range(AT_ONCE)))
            took += [seconds for seconds, _ in ended]
            codes += [code for _, code in ended]
            if begun % 40 == 0:
                tell(f"{len(took)} shutdowns: the longest took {max(took):.1f} s")
        over.set()
        await feeding
        [(attempts, crashes, again, jobs)] = laid.ask(SPENT)
    good = max(took) <= GRACE + AFTER_GRACE and not any(codes) and not attempts and not crashes
    measured = (
        f"{len(took)} exits, {sum(code == 0 for code in codes)} with code 0, the longest after {max(took):.1f} s; {jobs:,} jobs, "
        f"{again:,} handed back, {attempts} attempts spent, {crashes} crashes counted"
    )
    return Figure(
        "shutdowns", f"{TIMES} SIGTERMs: all out within grace ({GRACE:g} s + {AFTER_GRACE:g} s), no attempt spent", measured, good
    )


async def _once(laid: Ground) -> tuple[float, int]:
    worker = laid.worker("--concurrency", "10", TENURE_WORKERS_GRACE_SECONDS=str(GRACE))
    await until(lambda: bool(worker.children()), within=START)
    await asyncio.sleep(random.uniform(0.3, 1.5))  # noqa: S311 - also while it starts
    began = time.monotonic()
    assert worker.process is not None
    worker.process.send_signal(signal.SIGTERM)
    await until(lambda: not worker.alive, within=60)
    code = worker.process.returncode if not worker.alive else -1
    return time.monotonic() - began, code


async def _feed(over: asyncio.Event) -> None:
    number = 0
    while not over.is_set():
        number += 20
        seconds = [random.choice([0.01, 0.5, 3.0]) for _ in range(20)]  # noqa: S311
        await work.app.enqueue_many([work.brief.call(number + place, seconds[place]) for place in range(20)])
        await asyncio.sleep(0.2)
