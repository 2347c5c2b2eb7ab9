"""Leases that end while their holders are alive and send heartbeats."""

from __future__ import annotations

import asyncio
from random import Random

from psycopg import sql

from tenure.chaos.faults.processes import freeze
from tenure.chaos.field import Field, NotNow, Struck
from tenure.chaos.work import JOB_LEASE

SENDING = 8  # seconds, or until the jobs are taken away
FIND = """
    select w.id::text, w.pid, count(*) from tenure.workers w join tenure.jobs j on j.worker_id = w.id
     where w.died_at is null and j.lease_until is not null
     group by w.id order by md5(w.id::text || %s) limit 1"""

# As the reaper does it to a worker whose lease has ended. That the worker is alive is what the reaper cannot know.
CONDEMN = """
    update tenure.workers set died_at = clock_timestamp(), died_how = 'expired' where id = %s and died_at is null returning pid"""

# What heartbeats do to a row, thousands of times a second: some come between the snapshot of a statement and its lock.
HEARTBEATS = """
    do $$
    declare
        held uuid[] := array(select j.claim_id from tenure.jobs j where j.worker_id = {worker} and j.lease_until is not null);
        over timestamptz := clock_timestamp() + make_interval(secs => {seconds});
    begin
        perform set_config('synchronous_commit', 'off', false);
        while clock_timestamp() < over loop
            update tenure.jobs j set lease_until = clock_timestamp() + make_interval(secs => {lease})
             where j.worker_id = {worker} and j.claim_id = any (held) and j.lease_until is not null;
            exit when not found;
            commit;
            perform pg_sleep(0.0002);
        end loop;
    end $$"""


async def condemn_worker(field: Field, draws: Random) -> str:
    worker, pid, held = await _find(field, draws)
    sending = asyncio.create_task(_send_heartbeats(field, worker))
    try:
        await asyncio.sleep(draws.uniform(0.05, 0.2))
        condemned = await field.ask(CONDEMN, worker)
        await sending
    finally:
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
    if not condemned:
        raise NotNow(f"worker {worker} was gone already")
    return f"process {pid} with {held} jobs that send heartbeats"


async def stop_at_lease_end(field: Field, draws: Random) -> Struck:
    """The process goes on at about the moment in which its jobs are taken from it."""
    _, pid, held = await _find(field, draws)
    seconds = JOB_LEASE * draws.uniform(0.9, 1.3)
    await freeze(pid, seconds)
    return Struck(f"process {pid} with {held} jobs that send heartbeats, for {seconds:.1f} s", stopped=(pid,))


async def _find(field: Field, draws: Random) -> tuple[str, int, int]:
    rows = await field.ask(FIND, str(draws.random()))
    if not rows:
        raise NotNow("no worker has a job that sends heartbeats")
    [(worker, pid, held)] = rows
    return worker, pid, held


async def _send_heartbeats(field: Field, worker: str) -> None:
    values = {"worker": sql.Literal(worker), "seconds": sql.Literal(SENDING), "lease": sql.Literal(JOB_LEASE)}
    async with await field.connect() as connection:
        await connection.execute(sql.SQL(HEARTBEATS).format(**values))
