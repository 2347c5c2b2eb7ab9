"""PostgreSQL: sessions that end, a server that stops or dies, old snapshots, many connections, a full disk."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

import psycopg

from tenure.chaos.faults.base import FaultResult, FaultSkipped
from tenure.chaos.testbed import Testbed
from tenure.embedded import EmbeddedServer
from tenure.model.errors import ConfigError

CROWD = 300
READERS = 4
READING = 0.1  # seconds for which a report keeps its locks after its query
REPORT = "select max(finished_at) from (select finished_at from tenure.history limit 1000) recent"
START_TIMEOUT = 15.0  # seconds
END = """select count(pg_terminate_backend(pid)) from (
    select pid from pg_stat_activity
     where application_name like 'tenure%%' and datname = current_database()
     order by md5(pid::text || %s) limit %s) victims"""


async def end_sessions(testbed: Testbed, random: Random) -> FaultResult:
    [(ended,)] = await testbed.fetch(END, str(random.random()), random.randint(1, 3))
    return FaultResult(f"{ended} sessions")


async def server_stop(testbed: Testbed, random: Random) -> FaultResult:
    """An immediate stop: PostgreSQL recovers from its WAL, as after a crash."""
    return await _crash(testbed, signal.SIGQUIT, down=random.uniform(0, 2))


async def server_kill(testbed: Testbed, random: Random) -> FaultResult:
    return await _crash(testbed, signal.SIGKILL, down=random.uniform(0, 1))


async def hold_snapshot(testbed: Testbed, random: Random) -> FaultResult:
    seconds = random.uniform(5, 15)
    async with _open_transaction(testbed, "set transaction isolation level repeatable read; select count(*) from tenure.leases"):
        await asyncio.sleep(seconds)
    return FaultResult(f"for {seconds:.1f} s")


async def read_history(testbed: Testbed, random: Random) -> FaultResult:
    """Several reports at once that read all of history: they lock the table and each of its partitions, in that order."""
    seconds = random.uniform(2, 8)
    ends = time.monotonic() + seconds
    reports = await asyncio.gather(*(_report(testbed, ends) for _ in range(READERS)))
    return FaultResult(f"{sum(reports)} reports of {READERS} sessions in {seconds:.1f} s")


async def _report(testbed: Testbed, ends: float) -> int:
    done = 0
    async with await testbed.connect() as connection:
        while time.monotonic() < ends:
            async with connection.transaction():
                await connection.execute(REPORT)
                await asyncio.sleep(READING)
            done += 1
    return done


async def crowd(testbed: Testbed, random: Random) -> FaultResult:
    """Idle connections, up to the server's limit."""
    seconds = random.uniform(2, 5)
    connections: list[psycopg.AsyncConnection[object]] = []
    try:
        while len(connections) < CROWD:
            connections.append(await testbed.connect())
        await asyncio.sleep(seconds)
    except psycopg.OperationalError:
        await asyncio.sleep(seconds)
    finally:
        for connection in connections:
            await connection.close()
    return FaultResult(f"{len(connections)} idle connections for {seconds:.1f} s")


async def disk_full(testbed: Testbed, random: Random) -> FaultResult:
    if testbed.disk is None:
        raise FaultSkipped("the server has no small disk")
    seconds = random.uniform(1, 3)
    try:
        await asyncio.to_thread(testbed.disk.fill)
        await asyncio.sleep(seconds)
    finally:
        # If the fault is cut short while the disk is being filled, what is written from here on is freed when the thread ends.
        testbed.disk.clear()
    return FaultResult(f"for {seconds:.1f} s")


async def _crash(testbed: Testbed, number: signal.Signals, *, down: float) -> FaultResult:
    server = testbed.server
    pid = server.status().pid if server else None
    if server is None or pid is None:
        raise FaultSkipped("the server is not embedded, or down already")
    os.kill(pid, number)
    await asyncio.sleep(down)
    await _start(server)
    return FaultResult(f"down for {down:.1f} s and the time of its recovery")


async def _start(server: EmbeddedServer) -> None:
    """Repeats a failed start: the disk may be full at this moment, and recovery needs space."""
    deadline = time.monotonic() + START_TIMEOUT
    while True:
        try:
            await asyncio.to_thread(server.start)
            return
        except ConfigError:
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(0.2)


@asynccontextmanager
async def _open_transaction(testbed: Testbed, statements: str) -> AsyncIterator[None]:
    async with await testbed.connect() as connection, connection.transaction():
        for statement in statements.split(";"):
            await connection.execute(statement)
        yield
