"""Tables that a person locks, and a partition that is missing."""

from __future__ import annotations

import asyncio
from random import Random

from tenure.chaos.field import Field, NotNow

CORE = (
    "history", "history_default", "workers", "queues", "leases", "tallies", "incidents", "progress", "logs", "watches", "keys",
    "limits", "limit_changes", "starts",
)  # fmt: skip
"""Every job, or the lease of every worker, needs these in one statement or another."""

ASIDE = ("counters", "minutes", "latencies", "retentions", "schedules", "ticks", "declarations")
"""No job needs these to be promoted, claimed, run, settled or requeued."""

MODES = ("access exclusive", "access exclusive", "share row exclusive")
PATIENCE = "3s"
"""How long a lock is waited for: whoever comes later waits behind it."""

LARGEST = 200 << 20
"""Bytes of a partition that is moved while everything waits for it."""

PARTITION = """
    select c.relname, pg_total_relation_size(c.oid) from pg_inherits i join pg_class c on c.oid = i.inhrelid
     where i.inhparent = 'tenure.history'::regclass and c.relname = 'history_' || to_char(now() at time zone 'UTC', 'YYYYMMDD')"""


async def lock_jobs(field: Field, draws: Random) -> str:
    seconds = draws.uniform(2, 20) if draws.random() < 0.1 else draws.uniform(0.5, 2)
    return await _lock(field, "jobs", "share row exclusive", seconds)


async def lock_core(field: Field, draws: Random) -> str:
    seconds = draws.uniform(1, 20) if draws.random() < 0.2 else draws.uniform(0.5, 4)
    return await _lock(field, draws.choice(CORE), draws.choice(MODES), seconds)


async def lock_aside(field: Field, draws: Random) -> str:
    return await _lock(field, draws.choice(ASIDE), draws.choice(MODES), draws.uniform(1, 20))


async def lose_partition(field: Field, _draws: Random) -> str:
    """As after a restored dump, or a week without a leader: today has no partition, and its rows are in the default one."""
    rows = await field.ask(PARTITION)
    if not rows:
        raise NotNow("today has no partition already")
    [(name, size)] = rows
    if size > LARGEST:
        raise NotNow(f"{name} has {size >> 20} MB, and moving that would take too long")
    async with await field.connect() as connection, connection.transaction():
        await connection.execute(f"set local lock_timeout = '{PATIENCE}'")
        await connection.execute("lock table tenure.history in access exclusive mode")
        await connection.execute(f"alter table tenure.history detach partition tenure.{name}")
        moved = await connection.execute(f"insert into tenure.history_default select * from tenure.{name}")  # noqa: S608
        await connection.execute(f"drop table tenure.{name}")
    return f"{name}, {moved.rowcount} rows are in the default partition"


async def _lock(field: Field, table: str, mode: str, seconds: float) -> str:
    async with await field.connect() as connection, connection.transaction():
        await connection.execute(f"set local lock_timeout = '{PATIENCE}'")
        await connection.execute(f"lock table only tenure.{table} in {mode} mode")
        await asyncio.sleep(seconds)
    return f"{table}, {mode}, for {seconds:.1f} s"
