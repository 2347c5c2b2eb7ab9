"""What a campaign waits for: workers that are ready, at its beginning; finished jobs and a repaired history, at its end."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

import psycopg

from tenure import Tenure
from tenure.chaos import scheduled_jobs
from tenure.chaos.testbed import Testbed
from tenure.model.errors import ScheduleNotFound

CHECK_EVERY = 0.2
READY_TIMEOUT = 30.0
STALL_TIMEOUT = 60.0  # seconds without any change at the end: then the campaign stops waiting
CATCH_UP_TIMEOUT = 1200.0  # seconds for schedules, whose jobs may wait behind ten thousand others, one after the other
REPAIR_TIMEOUT = 60.0  # seconds for the cleaner, which runs every ten

READY_WORKERS = "select count(*) from tenure.workers where died_at is null"
UNFINISHED_JOBS = "select count(*) from tenure.jobs where state <> 'dead_letter'"
PLANNED_TIMES_LEFT = """
    select (select count(*) from tenure.schedules where paused_at is null and coalesce(next_at, since) <= to_timestamp(%s))
    + (select count(*) from tenure.ticks where outcome = 'queued' and planned_at <= to_timestamp(%s))"""
"""Planned times before a given time that are not recorded yet, or queued."""

UNREPAIRED_HISTORY = """
    select (to_regclass('tenure.history_' || to_char(now() at time zone 'UTC', 'YYYYMMDD')) is null)::integer
    + (select count(*) from tenure.history_default where finished_at >= date_trunc('day', now(), 'UTC'))"""
"""1 if today has no partition of history, plus the number of jobs finished today that are in the default partition."""


NEW_STEPS = "select count(*) filter (where state in ('done', 'failed')), coalesce(max(seq), 0) from chaos.steps where seq > %s"


class StepCounter:
    """How many steps workflows have recorded. Reads only what is new, so it may miss a few that commit late."""

    def __init__(self) -> None:
        self.steps = 0
        self._seq = 0

    async def update(self, testbed: Testbed) -> None:
        with suppress(psycopg.Error, OSError):
            [(steps, seq)] = await testbed.fetch(NEW_STEPS, self._seq)
            self.steps, self._seq = self.steps + steps, max(self._seq, seq)


async def until_ready(testbed: Testbed, workers: int) -> None:
    deadline = time.monotonic() + READY_TIMEOUT
    while time.monotonic() < deadline:
        if await fetch_number(testbed, READY_WORKERS) >= workers:
            return
        await asyncio.sleep(CHECK_EVERY)


async def until_drained(testbed: Testbed, healed: float) -> bool:
    """Schedules catch up and are paused; then all jobs finish. False: nothing changes any more."""
    caught_up = await _until_zero(testbed, PLANNED_TIMES_LEFT, healed, healed, within=CATCH_UP_TIMEOUT)
    app = Tenure(testbed.dsn)
    for name in scheduled_jobs.app.kinds.schedules:
        with suppress(ScheduleNotFound):  # the checker will report it
            await app.schedules.pause(name, reason="the campaign is over")
    await app.close()
    return await _until_zero(testbed, UNFINISHED_JOBS) and caught_up


async def until_repaired(testbed: Testbed) -> bool:
    """Whether all jobs that finished today are in the partition of today."""
    return await _until_zero(testbed, UNREPAIRED_HISTORY, within=REPAIR_TIMEOUT)


async def fetch_number(testbed: Testbed, statement: str, *values: object) -> int:
    """-1: the server does not answer."""
    with suppress(psycopg.Error, OSError):
        [(found,)] = await testbed.fetch(statement, *values)
        return int(found)
    return -1


async def _until_zero(testbed: Testbed, statement: str, *values: object, within: float = float("inf")) -> bool:
    """False if neither the number nor the number of unfinished jobs changes for `STALL_TIMEOUT` seconds, or after `within`."""
    changed = began = time.monotonic()
    before: tuple[int, int] | None = None
    while time.monotonic() < min(changed + STALL_TIMEOUT, began + within):
        left, unfinished = await fetch_number(testbed, statement, *values), await fetch_number(testbed, UNFINISHED_JOBS)
        if left == 0:
            return True
        if (left, unfinished) != before and left > 0:
            changed, before = time.monotonic(), (left, unfinished)
        await asyncio.sleep(CHECK_EVERY)
    return False
