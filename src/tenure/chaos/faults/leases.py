"""Leases that end while their holders are alive and send heartbeats."""

from __future__ import annotations

import asyncio
from random import Random

from psycopg import sql

from tenure.chaos.faults.base import FaultResult, FaultSkipped
from tenure.chaos.faults.processes import freeze
from tenure.chaos.jobs import JOB_LEASE
from tenure.chaos.testbed import Testbed

SENDING = 8  # seconds, or until the jobs are requeued
FIND = """
    select w.id::text, w.pid, count(*)
      from tenure.workers w join tenure.claims c on c.worker_id = w.id join tenure.jobs j on j.claim_id = c.id
     where w.died_at is null and j.lease_until is not null
     group by w.id order by md5(w.id::text || %s) limit 1"""

# What the reaper does to a worker whose lease has ended. The reaper cannot know that the worker is alive.
CONDEMN = """
    update tenure.workers set died_at = clock_timestamp(), died_how = 'expired' where id = %s and died_at is null returning pid"""

# What heartbeats do to a row, thousands of times a second: some fall between the snapshot of a statement and its lock.
HEARTBEATS = """
    do $$
    declare
        held uuid[] := array(select c.id from tenure.claims c where c.worker_id = {worker});
        over timestamptz := clock_timestamp() + make_interval(secs => {seconds});
    begin
        perform set_config('synchronous_commit', 'off', false);
        while clock_timestamp() < over loop
            update tenure.jobs j set lease_until = clock_timestamp() + make_interval(secs => {lease})
             where j.claim_id = any (held) and j.lease_until is not null;
            exit when not found;
            commit;
            perform pg_sleep(0.0002);
        end loop;
    end $$"""


async def condemn_worker(testbed: Testbed, random: Random) -> FaultResult:
    worker, pid, held = await _find(testbed, random)
    sending = asyncio.create_task(_send_heartbeats(testbed, worker))
    try:
        await asyncio.sleep(random.uniform(0.05, 0.2))
        condemned = await testbed.fetch(CONDEMN, worker)
        await sending
    finally:
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
    if not condemned:
        raise FaultSkipped(f"worker {worker} had ended already")
    return FaultResult(f"process {pid} with {held} jobs that send heartbeats")


async def stop_at_lease_end(testbed: Testbed, random: Random) -> FaultResult:
    """The process continues at about the moment when its jobs are requeued."""
    _, pid, held = await _find(testbed, random)
    seconds = JOB_LEASE * random.uniform(0.9, 1.3)
    await freeze(pid, seconds)
    return FaultResult(f"process {pid} with {held} jobs that send heartbeats, for {seconds:.1f} s", stopped=(pid,))


async def _find(testbed: Testbed, random: Random) -> tuple[str, int, int]:
    rows = await testbed.fetch(FIND, str(random.random()))
    if not rows:
        raise FaultSkipped("no worker has a job that sends heartbeats")
    [(worker, pid, held)] = rows
    return worker, pid, held


async def _send_heartbeats(testbed: Testbed, worker: str) -> None:
    values = {"worker": sql.Literal(worker), "seconds": sql.Literal(SENDING), "lease": sql.Literal(JOB_LEASE)}
    async with await testbed.connect() as connection:
        await connection.execute(sql.SQL(HEARTBEATS).format(**values))
