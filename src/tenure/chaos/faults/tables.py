"""Tables and rows: locks that a user could take, rows that PostgreSQL refuses to change, a missing partition."""

from __future__ import annotations

import asyncio
from random import Random

from tenure.chaos.faults.base import FaultResult, FaultSkipped
from tenure.chaos.testbed import Testbed

CORE = (
    "claims", "history", "history_default", "workers", "queues", "leases", "tallies", "incidents", "progress", "logs", "watches",
    "keys", "limits", "limit_changes", "starts", "chain_endings", "blocked", "blockers", "steps", "waits", "events",
)  # fmt: skip
"""Jobs, workflows, jobs that wait for others, or the leases of workers need each of these tables in some statement. A statement
locks all tables that it names: every job that ends needs `chain_endings`, also if no other job waits for it."""

ASIDE = (
    "counters", "minutes", "fleet_minutes", "latencies", "retentions", "schedules", "ticks", "declarations", "kinds", "tokens",
    "signing_keys", "audit",
)  # fmt: skip
"""No job needs these tables to be promoted, claimed, run, settled or requeued. What code declares is written when a supervisor
starts."""

MODES = ("access exclusive", "access exclusive", "share row exclusive")
JOBS_MODES = ("share row exclusive", "share row exclusive", "access exclusive")
"""Of the table of live jobs: the latter, as of ALTER TABLE, keeps jobs from being read as well."""

LOCK_TIMEOUT = "3s"
"""How long the fault waits for its lock: later sessions wait behind it."""

MAX_PARTITION = 200 << 20
"""Bytes of the largest partition that is moved: everything waits for that."""

PARTITION = """
    select c.relname, pg_total_relation_size(c.oid) from pg_inherits i join pg_class c on c.oid = i.inhrelid
     where i.inhparent = 'tenure.history'::regclass and c.relname = 'history_' || to_char(now() at time zone 'UTC', 'YYYYMMDD')"""


REFUSED_STEPS = ("claim", "finish", "move", "promote", "replay", "return", "start", "record")
SQLSTATES = ("AUDIT", "TN042", "42501", "0A000", "XX000", "23514", "22023", "P0001", "55000", "2F000", "08001", "55P03", "40001")
"""Of a user's own trigger, missing privileges, unsupported features, internal errors, constraints and invalid values; and, raised
by a trigger, the codes that otherwise mean an outage, a lock or a conflict."""

RUNNING = "select j.id from tenure.jobs j where j.claim_id is not null order by random() limit %s for update skip locked"
FIRST_LIMITED = """
    select j.id from tenure.jobs j where j.limit_group is not null and j.state = 'pending'
     order by j.limit_group, j.priority desc, j.position limit %s for update skip locked"""

REFUSE = """
    insert into chaos.refusals (moment, code, until) values (%s, %s, clock_timestamp() + make_interval(secs => %s))
    on conflict (moment) do update set code = excluded.code, until = excluded.until"""


async def lock_jobs(testbed: Testbed, random: Random) -> FaultResult:
    seconds = random.uniform(2, 20) if random.random() < 0.1 else random.uniform(0.5, 2)
    return await _lock(testbed, "jobs", random.choice(JOBS_MODES), seconds)


async def lock_core(testbed: Testbed, random: Random) -> FaultResult:
    seconds = random.uniform(1, 20) if random.random() < 0.2 else random.uniform(0.5, 4)
    return await _lock(testbed, random.choice(CORE), random.choice(MODES), seconds)


async def lock_aside(testbed: Testbed, random: Random) -> FaultResult:
    return await _lock(testbed, random.choice(ASIDE), random.choice(MODES), random.uniform(1, 20))


async def lose_partition(testbed: Testbed, _random: Random) -> FaultResult:
    """As after restoring a dump, or a week without a leader: today has no partition, and its rows are in the default one."""
    rows = await testbed.fetch(PARTITION)
    if not rows:
        raise FaultSkipped("today has no partition already")
    [(name, size)] = rows
    if size is None:
        raise FaultSkipped(f"{name} was dropped meanwhile")
    if size > MAX_PARTITION:
        raise FaultSkipped(f"{name} has {size >> 20} MB, and moving them would take too long")
    async with await testbed.connect() as connection, connection.transaction():
        await connection.execute(f"set local lock_timeout = '{LOCK_TIMEOUT}'")
        await connection.execute("lock table tenure.history in access exclusive mode")
        await connection.execute(f"alter table tenure.history detach partition tenure.{name}")
        moved = await connection.execute(f"insert into tenure.history_default select * from tenure.{name}")  # noqa: S608
        await connection.execute(f"drop table tenure.{name}")
    return FaultResult(f"{name}, {moved.rowcount} rows are in the default partition")


async def lock_rows(testbed: Testbed, random: Random) -> FaultResult:
    """Like a transaction of the user that cancels jobs and stays open: running jobs, or the first ones under a limit."""
    seconds = random.uniform(1, 8)
    which, rows = random.choice([("running", RUNNING), ("limited", FIRST_LIMITED)])
    async with await testbed.connect() as connection, connection.transaction():
        found = await connection.execute(rows, [random.randint(1, 5)])
        await asyncio.sleep(seconds)
    return FaultResult(f"{found.rowcount} {which} jobs, for {seconds:.1f} s")


async def refuse_rows(testbed: Testbed, random: Random) -> FaultResult:
    """One row in a batch of many: `chaos.refuse` in recorder.sql raises. Ends by itself, at a time that is stored with it."""
    seconds = random.uniform(1, 8)
    steps = random.sample(REFUSED_STEPS, random.randint(1, len(REFUSED_STEPS)))
    sqlstate = random.choice(SQLSTATES)
    for step in steps:
        await testbed.fetch(REFUSE, step, sqlstate, seconds)
    await asyncio.sleep(seconds)
    return FaultResult(f"{', '.join(steps)} with {sqlstate}, for {seconds:.1f} s")


async def accept_rows(testbed: Testbed) -> None:
    await testbed.fetch("delete from chaos.refusals")


async def _lock(testbed: Testbed, table: str, mode: str, seconds: float) -> FaultResult:
    async with await testbed.connect() as connection, connection.transaction():
        await connection.execute(f"set local lock_timeout = '{LOCK_TIMEOUT}'")
        await connection.execute(f"lock table only tenure.{table} in {mode} mode")
        await asyncio.sleep(seconds)
    return FaultResult(f"{table}, {mode}, for {seconds:.1f} s")
