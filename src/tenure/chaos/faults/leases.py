"""Leases that end while their holders are alive and send heartbeats."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from random import Random

from tenure import TenureError
from tenure.chaos.faults.processes import freeze
from tenure.chaos.field import Field, NotNow, Struck
from tenure.chaos.work import JOB_LEASE
from tenure.store import jobs
from tenure.store.link import Link
from tenure.store.place import Place

SENDERS = 3
SENDING = 1.0  # seconds

FIND = """
    select w.id::text, w.pid, json_agg(json_build_object('id', j.id, 'claim_id', j.claim_id, 'lease', %s::float8))::text, count(*)
      from tenure.workers w join tenure.jobs j on j.worker_id = w.id
     where w.died_at is null and j.lease_until is not null
     group by w.id order by md5(w.id::text || %s) limit 1"""

# As the reaper does it to a worker whose lease has ended. That the worker is alive is what the reaper cannot know.
CONDEMN = (
    "update tenure.workers set died_at = clock_timestamp(), died_how = 'expired' where id = %s and died_at is null returning pid"
)


async def condemn_worker(field: Field, draws: Random) -> str:
    """Its heartbeats are under way all the time: some change a row between the snapshot of a statement and its lock."""
    worker, pid, notes, held = await _find(field, draws)
    senders = [asyncio.create_task(_send(field, notes)) for _ in range(SENDERS)]
    try:
        await asyncio.sleep(draws.uniform(0.05, 0.2))
        condemned = await field.ask(CONDEMN, worker)
        await asyncio.sleep(SENDING)
    finally:
        for sender in senders:
            sender.cancel()
        await asyncio.gather(*senders, return_exceptions=True)
    if not condemned:
        raise NotNow(f"worker {worker} was gone already")
    return f"process {pid} with {held} jobs that send heartbeats"


async def stop_at_lease_end(field: Field, draws: Random) -> Struck:
    """The process goes on at about the moment in which its jobs are taken from it."""
    _, pid, _, held = await _find(field, draws)
    seconds = JOB_LEASE * draws.uniform(0.9, 1.3)
    await freeze(pid, seconds)
    return Struck(f"process {pid} with {held} jobs that send heartbeats, for {seconds:.1f} s", stopped=(pid,))


async def _find(field: Field, draws: Random) -> tuple[str, int, str, int]:
    rows = await field.ask(FIND, JOB_LEASE, str(draws.random()))
    if not rows:
        raise NotNow("no worker has a job that sends heartbeats")
    [(worker, pid, notes, held)] = rows
    return worker, pid, notes, held


async def _send(field: Field, notes: str) -> None:
    """Until cancelled. By the statement of the worker itself."""
    link = Link(Place.at(field.dsn), "notes", hot=True)
    heartbeats = json.dumps(json.loads(notes))
    try:
        while True:
            with suppress(TenureError):
                await link.fetch(jobs.note(heartbeats, 200))
            await asyncio.sleep(0)
    finally:
        await link.close()
