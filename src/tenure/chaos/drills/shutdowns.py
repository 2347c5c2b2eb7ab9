"""SIGTERM under load, repeatedly."""

from __future__ import annotations

import asyncio
import random
import signal
import time
from collections.abc import Callable

from tenure.chaos import jobs
from tenure.chaos.drills.environment import DrillEnvironment, DrillResult, open_environment, until

TIMES = 200
AT_ONCE = 4
GRACE = 1.0
"""Seconds. Shorter than most jobs, so that they are requeued."""
AFTER_GRACE = 9.0
START_TIMEOUT = 30.0

COUNTS = """select count(*) filter (where attempt > 1), count(*) filter (where crashes > 0),
       count(*) filter (where fence > 1), count(*) from tenure.all_jobs"""


async def shutdowns(show: Callable[[str], None]) -> DrillResult:
    took: list[float] = []
    codes: list[int] = []
    async with open_environment() as environment:
        over = asyncio.Event()
        feeding = asyncio.create_task(_feed(over))
        for begun in range(0, TIMES, AT_ONCE):
            ended = await asyncio.gather(*(_once(environment) for _ in range(AT_ONCE)))
            took += [seconds for seconds, _ in ended]
            codes += [code for _, code in ended]
            if begun % 40 == 0:
                show(f"{len(took)} shutdowns: longest {max(took):.1f} s")
        over.set()
        await feeding
        [(attempts, crashes, requeued, total)] = environment.fetch(COUNTS)
    good = max(took) <= GRACE + AFTER_GRACE and not any(codes) and not attempts and not crashes
    measured = (
        f"{len(took)} exits, {sum(code == 0 for code in codes)} with code 0, longest {max(took):.1f} s; {total:,} jobs, "
        f"{requeued:,} requeued, {attempts} attempts used up, {crashes} crashes counted"
    )
    return DrillResult(
        "shutdowns",
        f"{TIMES} SIGTERMs: all exit within {GRACE:g} s + {AFTER_GRACE:g} s, and no attempt is used up",
        measured,
        good,
    )


async def _once(environment: DrillEnvironment) -> tuple[float, int]:
    worker = environment.start_worker("--concurrency", "10", TENURE_WORKERS_GRACE_SECONDS=str(GRACE))
    await until(lambda: bool(worker.children()), within=START_TIMEOUT)
    await asyncio.sleep(random.uniform(0.3, 1.5))  # noqa: S311 - also during its start
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
        await jobs.app.enqueue_many([jobs.brief.call(number + index, seconds[index]) for index in range(20)])
        await asyncio.sleep(0.2)
