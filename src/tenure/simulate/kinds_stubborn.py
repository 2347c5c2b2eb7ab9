"""Kinds that do not listen, do not answer, or take their process with them. All of them end by themselves."""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import suppress

from tenure import Context
from tenure.simulate.app import app

DEAF = 6.0  # seconds: longer than any worker waits for an aborted handler


@app.job(timeout="1s", max_attempts=1)
async def ignores_cancel(seed: int) -> int:
    """A coroutine that swallows every cancellation until six seconds are over. Ends: dead letter, and it runs on for nothing."""
    end = time.monotonic() + DEAF
    while (left := end - time.monotonic()) > 0:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(left)
    return seed


@app.job(timeout="1s", max_attempts=1)
def ignores_cancel_in_thread(seed: int) -> int:
    """A thread that listens to nobody for six seconds. Ends: dead letter, and the thread is left behind."""
    time.sleep(DEAF)
    return seed


@app.job(run_in="process", timeout="1s", max_attempts=1)
def stuck_process(seed: int) -> int:
    """A process that hangs when its second is over. Ends: dead letter, and the process is gone."""
    time.sleep(DEAF)
    return seed


@app.job(run_in="process", timeout="1s", max_attempts=1)
def ignores_cancel_in_process(seed: int) -> int:
    """A process that swallows whatever asks it to end, for six seconds. Ends: dead letter, and the process is killed."""
    end = time.monotonic() + DEAF
    while (left := end - time.monotonic()) > 0:
        with suppress(BaseException):
            time.sleep(left)
    return seed


@app.job(run_in="process")
def crashes_its_process(seed: int) -> None:
    """Takes its process down, without a word, at every run. Ends: dead letter after three crashes, no attempt spent."""
    os._exit(1 + seed % 100)


@app.job(run_in="process")
def crashes_once(ctx: Context, seed: int) -> int:
    """Takes its process down at its first run only. Ends: completed, with one crash and no attempt spent on it."""
    if ctx.fence == 1:
        os._exit(1)
    return seed


@app.job
async def kills_its_worker(seed: int) -> None:
    """Takes its whole worker down; for `tenure worker` only. Ends: dead letter after three crashes, neighbours unharmed."""
    os._exit(1 + seed % 100)


@app.job(lease="2s")
async def forgets_heartbeat(seed: int) -> int:
    """Never gives the sign of life that its lease asks for. Ends: dead letter after three lost leases, which takes its time."""
    await asyncio.sleep(30)
    return seed


@app.job(lease="2s")
async def needs_heartbeat(ctx: Context, seed: int, beats: int = 8) -> int:
    """Runs longer than its lease, and gives signs of life in time. Ends: completed."""
    for _ in range(beats):
        await asyncio.sleep(0.4)
        ctx.heartbeat()
    return seed
