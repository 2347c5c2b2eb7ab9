"""The beginning and the end of a campaign: workers that are there, and jobs that are all done."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

import psycopg

from tenure import Tenure
from tenure.chaos import scheduled
from tenure.chaos.field import Field
from tenure.model.errors import ScheduleNotFound

LOOK_EVERY = 0.2
START = 30.0  # seconds for the workers to be there
STALLED = 60.0  # seconds in which nothing moves, at the end: then it is not waited for any longer
CATCHING_UP = 300.0  # seconds for schedules, whose jobs may stand behind ten thousand others

READY = "select count(*) from tenure.workers where died_at is null"
LEFT = "select count(*) from tenure.jobs where state <> 'dead_letter'"
BEHIND = """
    select (select count(*) from tenure.schedules where paused_at is null and coalesce(next_at, since) <= to_timestamp(%s))
    + (select count(*) from tenure.ticks where outcome = 'queued' and planned_at <= to_timestamp(%s))"""
"""Of the times that came before a moment, those that are not recorded yet or stand in line."""


UNREPAIRED = """
    select (to_regclass('tenure.history_' || to_char(now() at time zone 'UTC', 'YYYYMMDD')) is null)::integer
    + (select count(*) from tenure.history_default where finished_at >= date_trunc('day', now(), 'UTC'))"""
"""Whether today has no partition of history, and how many finished jobs are in the default one instead."""
REPAIRING = 60.0  # seconds for the cleaner, which comes every ten


async def until_ready(field: Field, workers: int) -> None:
    deadline = time.monotonic() + START
    while time.monotonic() < deadline:
        if await number(field, READY) >= workers:
            return
        await asyncio.sleep(LOOK_EVERY)


async def drain(field: Field, healed: float) -> bool:
    """Schedules catch up and are paused; then all jobs come to an end. False: nothing moves any more."""
    caught_up = await _until_none(field, BEHIND, healed, healed, within=CATCHING_UP)
    app = Tenure(field.dsn)
    for name in scheduled.app.kinds.schedules:
        with suppress(ScheduleNotFound):  # which the checker will tell
            await app.schedules.pause(name, reason="the campaign is over")
    await app.close()
    return await _until_none(field, LEFT) and caught_up


async def repaired(field: Field) -> bool:
    """Whether finished jobs are in the partition of their day."""
    return await _until_none(field, UNREPAIRED, within=REPAIRING)


async def number(field: Field, statement: str, *values: object) -> int:
    """-1: the server does not answer."""
    with suppress(psycopg.Error, OSError):
        [(found,)] = await field.ask(statement, *values)
        return int(found)
    return -1


async def _until_none(field: Field, statement: str, *values: object, within: float = float("inf")) -> bool:
    """Neither what is asked for nor the number of live jobs may stand still for long."""
    moved = began = time.monotonic()
    before: tuple[int, int] | None = None
    while time.monotonic() < min(moved + STALLED, began + within):
        left, live = await number(field, statement, *values), await number(field, LEFT)
        if left == 0:
            return True
        if (left, live) != before and left > 0:
            moved, before = time.monotonic(), (left, live)
        await asyncio.sleep(LOOK_EVERY)
    return False
