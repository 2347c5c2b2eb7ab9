"""Kinds that complete, in the event loop, in threads and in processes."""

from __future__ import annotations

import asyncio
import time
from hashlib import sha256

from tenure import Context
from tenure.simulate.app import app
from tenure.simulate.draws import checksum, milliseconds, noise

PAGE = 4096
LEAKS_KEPT = 8  # blocks per process: it grows, but not without limit

_leaked: list[bytearray] = []


@app.job
async def quick(seed: int) -> int:
    """Returns its seed at once. Ends: completed."""
    return seed


@app.job
async def slow(seed: int, most_ms: int = 1000) -> int:
    """Sleeps for a time drawn from its seed, in the event loop. Ends: completed."""
    nap = milliseconds(seed, "slow", least=50, most=most_ms)
    await asyncio.sleep(nap / 1000)
    return nap


@app.job
def thread_nap(seed: int, most_ms: int = 500) -> int:
    """The same as a plain function, in a thread. Ends: completed."""
    nap = milliseconds(seed, "thread_nap", least=20, most=most_ms)
    time.sleep(nap / 1000)
    return nap


@app.job(run_in="process")
def cpu(seed: int, rounds: int = 200_000) -> int:
    """Computes a checksum in a separate process. Ends: completed."""
    return checksum(seed, rounds)


@app.job
async def blocks_loop(seed: int, ms: int = 300) -> int:
    """A coroutine that blocks the event loop, as careless code does. Ends: completed, while other jobs are delayed."""
    time.sleep(ms / 1000)  # noqa: ASYNC251 - on purpose
    return seed


@app.job(run_in="process")
def leaks_memory(seed: int, megabytes: int = 8) -> int:
    """Its process allocates this much memory, touches every page and keeps it. Ends: completed, and the process has grown."""
    block = bytearray(megabytes << 20)
    block[::PAGE] = b"\1" * (len(block) // PAGE)
    _leaked.append(block)
    del _leaked[:-LEAKS_KEPT]
    return seed + block.count(1)


@app.job
async def big_payload(seed: int, text: str) -> str:
    """Takes half a megabyte of input and returns its digest. Ends: completed."""
    return f"{seed} {sha256(text.encode()).hexdigest()}"


@app.job
async def big_output(seed: int, kib: int = 500) -> str:
    """Returns half a megabyte. Ends: completed."""
    return noise(seed, kib)


@app.job
async def asks_database(ctx: Context, seed: int) -> int:
    """Borrows a connection and queries PostgreSQL. Ends: completed."""
    async with ctx.db() as connection:
        cursor = await connection.execute("select %s::bigint", [seed])
        row = await cursor.fetchone()
    assert row is not None
    return int(row[0])
