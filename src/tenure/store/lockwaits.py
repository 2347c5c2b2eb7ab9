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


class LockWatch:
    """Watches the statements of one link, of which one runs at a time.

    Its timer is not set for each statement, because nearly all of them take a millisecond: it is left to run out, and is set
    again only if a statement is under way then.
    """

    def __init__(self, database: DatabaseTarget) -> None:
        self._database = database
        self._loop: asyncio.AbstractEventLoop | None = None
        """That of the timer. None: no timer is set."""
        self._began = 0.0
        self._name = ""
        self._connection: AsyncConnection[Any] | None = None

    def begin(self, name: str, connection: AsyncConnection[Any]) -> None:
        loop = asyncio.get_running_loop()
        self._began, self._name, self._connection = loop.time(), name, connection
        if self._loop is not loop:
            self._set_timer(loop)

    def end(self) -> None:
        self._connection = None

    def _set_timer(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        loop.call_at(self._began + PATIENCE, self._look, loop)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._loop is not loop:
            return
        self._loop = None
        if self._connection is None:
            return
        if loop.time() < self._began + PATIENCE:  # it began after the timer was set
            self._set_timer(loop)
            return
        task = asyncio.ensure_future(_report(self._database, self._name, self._connection.info.backend_pid))
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
