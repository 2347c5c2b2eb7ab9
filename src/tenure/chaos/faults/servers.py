"""PostgreSQL: sessions that end, a server that stops or dies, old snapshots, crowds, a full disk."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

import psycopg

from tenure.chaos.field import Field, NotNow
from tenure.embedded import EmbeddedServer
from tenure.model.errors import ConfigError

CROWD = 300
READERS = 4
READING = 0.1  # seconds that a report takes after its query, with its locks
REPORT = "select max(finished_at) from (select finished_at from tenure.history limit 1000) recent"
STARTING = 15.0  # seconds
END = """select count(pg_terminate_backend(pid)) from (
    select pid from pg_stat_activity
     where application_name like 'tenure%%' and datname = current_database()
     order by md5(pid::text || %s) limit %s) victims"""


async def end_sessions(field: Field, draws: Random) -> str:
    [(ended,)] = await field.ask(END, str(draws.random()), draws.randint(1, 3))
    return f"{ended} sessions"


async def server_stop(field: Field, draws: Random) -> str:
    """An immediate stop: PostgreSQL recovers from its log, as after a crash."""
    return await _crash(field, signal.SIGQUIT, away=draws.uniform(0, 2))


async def server_kill(field: Field, draws: Random) -> str:
    return await _crash(field, signal.SIGKILL, away=draws.uniform(0, 1))


async def hold_snapshot(field: Field, draws: Random) -> str:
    seconds = draws.uniform(5, 15)
    async with _holding(field, "set transaction isolation level repeatable read; select count(*) from tenure.leases"):
        await asyncio.sleep(seconds)
    return f"for {seconds:.1f} s"


async def read_history(field: Field, draws: Random) -> str:
    """Reports that read all of history, several at once: they lock the table and each of its partitions, in that order."""
    seconds = draws.uniform(2, 8)
    ends = time.monotonic() + seconds
    reports = await asyncio.gather(*(_report(field, ends) for _ in range(READERS)))
    return f"{sum(reports)} reports of {READERS} sessions in {seconds:.1f} s"


async def _report(field: Field, ends: float) -> int:
    done = 0
    async with await field.connect() as connection:
        while time.monotonic() < ends:
            async with connection.transaction():
                await connection.execute(REPORT)
                await asyncio.sleep(READING)
            done += 1
    return done


async def crowd(field: Field, draws: Random) -> str:
    """Idle connections, up to the server's limit."""
    seconds = draws.uniform(2, 5)
    guests: list[psycopg.AsyncConnection[object]] = []
    try:
        while len(guests) < CROWD:
            guests.append(await field.connect())
        await asyncio.sleep(seconds)
    except psycopg.OperationalError:
        await asyncio.sleep(seconds)
    finally:
        for guest in guests:
            await guest.close()
    return f"{len(guests)} idle connections for {seconds:.1f} s"


async def disk_full(field: Field, draws: Random) -> str:
    if field.disk is None:
        raise NotNow("no disk of its own")
    seconds = draws.uniform(1, 3)
    await asyncio.to_thread(field.disk.fill)
    try:
        await asyncio.sleep(seconds)
    finally:
        field.disk.clear()
    return f"for {seconds:.1f} s"


async def _crash(field: Field, number: signal.Signals, *, away: float) -> str:
    server = field.server
    pid = server.status().pid if server else None
    if server is None or pid is None:
        raise NotNow("the server is not ours, or away already")
    os.kill(pid, number)
    await asyncio.sleep(away)
    await _start(server)
    return f"away for {away:.1f} s and the time of its recovery"


async def _start(server: EmbeddedServer) -> None:
    """Again if need be: its disk may be full at this moment, and recovery needs room."""
    deadline = time.monotonic() + STARTING
    while True:
        try:
            await asyncio.to_thread(server.start)
            return
        except ConfigError:
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(0.2)


@asynccontextmanager
async def _holding(field: Field, statements: str) -> AsyncIterator[None]:
    async with await field.connect() as connection, connection.transaction():
        for statement in statements.split(";"):
            await connection.execute(statement)
        yield
