"""Limits that are set, changed and removed while jobs wait, run and come back under them."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from random import Random

from tenure import Rate, Tenure, TenureError
from tenure.chaos.field import Field
from tenure.chaos.work import CHANGED_KINDS

MOST_CHANGES = 4
LONGEST_PAUSE = 1.5  # seconds between two changes


async def change_limits(field: Field, draws: Random) -> str:
    """Several changes in a row: jobs that come in, are promoted or come back in between stand under a limit that is gone."""
    name = f"kind:{draws.choice(CHANGED_KINDS)}"
    app = Tenure(field.dsn)
    try:
        changes = [await _change(app, name, draws)]
        for _ in range(draws.randint(0, MOST_CHANGES - 1)):
            await asyncio.sleep(draws.uniform(0, LONGEST_PAUSE))
            changes.append(await _change(app, name, draws))
    finally:
        await app.close()
    return f"{name}: {', '.join(changes)}"


async def remove_limits(field: Field) -> None:
    """For good: whatever still waits under one of them must be found without it."""
    app = Tenure(field.dsn)
    try:
        for kind in CHANGED_KINDS:
            await app.client().set_limit(f"kind:{kind}", concurrency=None, rate=None, by="the campaign")
    finally:
        with suppress(TenureError):
            await app.close()


async def _change(app: Tenure, name: str, draws: Random) -> str:
    client = app.client()
    what = draws.choice(["concurrency", "concurrency", "rate", "none", "none", "reset"])
    if what == "concurrency":
        most = draws.choice([1, 2, 5, 20])
        await client.set_limit(name, concurrency=most, rate=None, by="the campaign")
        return f"{most} at a time"
    if what == "rate":
        await client.set_limit(name, concurrency=None, rate=Rate(20, "1s"), by="the campaign")
        return "20 a second"
    if what == "none":
        await client.set_limit(name, concurrency=None, rate=None, by="the campaign")
        return "no limit"
    await client.reset_limit(name, declared=draws.random() < 0.5)
    return "reset"
