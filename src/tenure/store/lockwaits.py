"""Reports statements of ours that wait for a lock, and the session that holds it."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import psycopg
from psycopg import AsyncConnection

from tenure.outages import failures
from tenure.store import faults
from tenure.store.connecting import server_of
from tenure.store.target import DatabaseTarget

log = logging.getLogger("tenure")

PATIENCE = 4.0
"""Seconds that a statement may take before we look what it waits for."""

_looking: set[asyncio.Task[None]] = set()


def watch(database: DatabaseTarget, name: str, connection: AsyncConnection[Any]) -> asyncio.TimerHandle:
    """To be called when a statement begins. The returned timer has to be canceled when it is done."""
    return asyncio.get_running_loop().call_later(PATIENCE, _look, database, name, connection)


def _look(database: DatabaseTarget, name: str, connection: AsyncConnection[Any]) -> None:
    task = asyncio.ensure_future(_report(database, name, connection.info.backend_pid))
    _looking.add(task)  # the event loop keeps only a weak reference
    task.add_done_callback(_looking.discard)


async def _report(database: DatabaseTarget, name: str, pid: int) -> None:
    if database.pooled:  # the process id is one of the pooler
        text = f"{name} has taken {PATIENCE:g} s; see pg_stat_activity, and whether the pooler has a free connection"
        failures.blocked(server_of(database.dsn), name, text, known_by=name)
        return
    from tenure.store.lock_holders import find_lock_holders  # noqa: PLC0415 - brings all reports, and is rarely needed

    try:
        holders = await find_lock_holders(database, pid)
    except (psycopg.Error, OSError) as error:
        log.debug("%s has taken %g s; cannot find out why: %s", name, PATIENCE, faults.words(error, database.dsn))
        return
    if holders:
        text = f"{name} has waited {PATIENCE:g} s for a lock of {', '.join(map(str, holders))}"
        failures.blocked(server_of(database.dsn), name, text, known_by=f"{name} {sorted(holder.pid for holder in holders)}")
