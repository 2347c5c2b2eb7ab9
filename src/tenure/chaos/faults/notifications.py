"""A full NOTIFY queue: a session listens and keeps its transaction open."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from random import Random

import psycopg
from psycopg.errors import ProgramLimitExceeded

from tenure.chaos.faults.base import FaultResult, FaultSkipped
from tenure.chaos.testbed import NOTIFY_PAGES, Testbed

MAX_MESSAGES = 10 * NOTIFY_PAGES
NOISE = "x" * 7000

EMPTY = "select pg_notification_queue_usage()"
"""PostgreSQL removes notifications that all listeners have read only when another one is sent, and a full queue accepts none: it
stays full until this function is called, even if no listener lags any more."""

_active = asyncio.Lock()


async def fill_notify(testbed: Testbed, random: Random) -> FaultResult:
    if _active.locked():
        raise FaultSkipped("the queue is full already")
    seconds = random.uniform(1, 8)
    async with _active:
        try:
            sent = await _fill(testbed, seconds)
        finally:
            with suppress(psycopg.Error, OSError):
                await empty_queue(testbed)
    return FaultResult(f"full after {sent} messages, for {seconds:.1f} s")


async def empty_queue(testbed: Testbed) -> None:
    await testbed.fetch(EMPTY)


async def _fill(testbed: Testbed, seconds: float) -> int:
    async with await testbed.connect() as listener, await testbed.connect() as sender:
        await listener.execute("listen chaos_noise")
        async with listener.transaction():
            await listener.execute("select 1")
            for sent in range(MAX_MESSAGES):
                try:
                    await sender.execute("select pg_notify('chaos_noise', %s)", [f"{sent} {NOISE}"])
                except ProgramLimitExceeded:
                    await asyncio.sleep(seconds)
                    return sent
    raise FaultSkipped(f"the queue was not full after {MAX_MESSAGES} messages")
