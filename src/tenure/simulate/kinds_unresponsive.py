"""Kinds that ignore cancellation, hang, or crash their process. Even unattended, each of them ends after some seconds."""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import suppress

from tenure import Context
from tenure.simulate.app import app

IGNORING = 6.0  # seconds: longer than any worker waits for an aborted handler


@app.job(timeout="1s", max_attempts=1)
async def ignores_cancel(seed: int) -> int:
    """A coroutine that ignores every cancellation for six seconds. Ends: dead letter, while the coroutine runs on."""
    end = time.monotonic() + IGNORING
    while (left := end - time.monotonic()) > 0:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(left)
    return seed


@app.job(timeout="1s", max_attempts=1)
def ignores_cancel_in_thread(seed: int) -> int:
    """A thread that ignores the abort signal for six seconds. Ends: dead letter, and the thread is abandoned."""
    time.sleep(IGNORING)
    return seed


@app.job(run_in="process", timeout="1s", max_attempts=1)
def stuck_process(seed: int) -> int:
    """A process that hangs beyond its timeout. Ends: dead letter, and the process is ended."""
    time.sleep(IGNORING)
    return seed


@app.job(run_in="process", timeout="1s", max_attempts=1)
def ignores_cancel_in_process(seed: int) -> int:
    """A process that ignores every exception for six seconds. Ends: dead letter, and the process is killed."""
    end = time.monotonic() + IGNORING
    while (left := end - time.monotonic()) > 0:
        with suppress(BaseException):
            time.sleep(left)
    return seed


@app.job(run_in="process")
def crashes_its_process(seed: int) -> None:
    """Crashes its process without a message on every run. Ends: dead letter after three crashes, with no attempt used."""
    os._exit(1 + seed % 100)


@app.job(run_in="process")
def crashes_once(ctx: Context, seed: int) -> int:
    """Crashes its process on the first run only. Ends: completed, with one crash that used no attempt."""
    if ctx.fence == 1:
        os._exit(1)
    return seed


@app.job
async def kills_its_worker(seed: int) -> None:
    """Crashes its whole worker; needs `tenure worker`. Ends: dead letter after three crashes, other jobs unaffected."""
    os._exit(1 + seed % 100)


@app.job(lease="2s")
async def forgets_heartbeat(seed: int) -> int:
    """Never sends the heartbeat that its lease requires. Ends: dead letter after three lost leases, after some time."""
    await asyncio.sleep(30)
    return seed


@app.job(lease="2s")
async def needs_heartbeat(ctx: Context, seed: int, beats: int = 8) -> int:
    """Runs longer than its lease, and sends heartbeats in time. Ends: completed."""
    for _ in range(beats):
        await asyncio.sleep(0.4)
        ctx.heartbeat()
    return seed
