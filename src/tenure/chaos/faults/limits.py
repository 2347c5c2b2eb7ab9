"""Limits that are set, changed and removed while jobs wait, run and are requeued under them."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from random import Random

from tenure import Rate, Tenure, TenureError
from tenure.chaos.faults.base import FaultResult
from tenure.chaos.jobs import CHANGED_KINDS
from tenure.chaos.testbed import Testbed

MAX_CHANGES = 4
MAX_PAUSE = 1.5  # seconds between two changes


async def change_limits(testbed: Testbed, random: Random) -> FaultResult:
    """Several changes in a row: jobs enqueued, promoted or requeued in between are assigned to a limit that is then removed."""
    name = f"kind:{random.choice(CHANGED_KINDS)}"
    app = Tenure(testbed.dsn)
    try:
        changes = [await _change(app, name, random)]
        for _ in range(random.randint(0, MAX_CHANGES - 1)):
            await asyncio.sleep(random.uniform(0, MAX_PAUSE))
            changes.append(await _change(app, name, random))
    finally:
        await app.close()
    return FaultResult(f"{name}: {', '.join(changes)}")


async def remove_limits(testbed: Testbed) -> None:
    """Permanently: jobs that still wait under one of these limits must be claimed without it."""
    app = Tenure(testbed.dsn)
    try:
        for kind in CHANGED_KINDS:
            await app.client().set_limit(f"kind:{kind}", concurrency=None, rate=None, by="the campaign")
    finally:
        with suppress(TenureError):
            await app.close()


async def _change(app: Tenure, name: str, random: Random) -> str:
    client = app.client()
    what = random.choice(["concurrency", "concurrency", "rate", "none", "none", "reset"])
    if what == "concurrency":
        concurrency = random.choice([1, 2, 5, 20])
        await client.set_limit(name, concurrency=concurrency, rate=None, by="the campaign")
        return f"{concurrency} at a time"
    if what == "rate":
        await client.set_limit(name, concurrency=None, rate=Rate(20, "1s"), by="the campaign")
        return "20 a second"
    if what == "none":
        await client.set_limit(name, concurrency=None, rate=None, by="the campaign")
        return "no limit"
    await client.reset_limit(name, declared=random.random() < 0.5)
    return "reset"
