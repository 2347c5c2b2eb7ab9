"""Claims under a limit: in one transaction, first the lock of the limit, then the jobs for which it has room."""

from __future__ import annotations

import json

from tenure.store import limits
from tests.interleavings.names import name_of, uid
from tests.interleavings.steps.step import JOB, LIMIT, Change, Step, rows
from tests.interleavings.world import Job, World

NAME = "kind:work"
MOST = 1
"""Jobs that may be held at a time."""

QUEUES = {"J": "default", "K": "other"}
SERVES = {"W1": "default", "W2": "other"}
"""Two workers that want different jobs under the same limit: only its lock keeps them apart."""


def lock(worker: str) -> Step:
    """Nothing is locked where nothing waits, or where the limit is full as far as can be seen."""

    def changes(world: World) -> list[Change]:
        return [Change("limit had", skips=True, firm=False)] if _waiting(world, worker) and _room(world) > 0 else []

    return Step(
        f"{worker} asks for the limit",
        limits.lock([NAME], [SERVES[worker]]),
        lambda reply: ("limit had",) * sum(row[1] == "t" for row in reply.rows),
        changes,
        locks=rows(LIMIT),
    )


def claim(worker: str, claim: str) -> Step:
    """As many as there is room for, the oldest first."""

    def grant(name: str, job: Job) -> Change:
        def then(world: World) -> World | None:
            if _room(world) <= 0:
                return None
            return world.claimed(name, claim, worker)

        return Change(f"{name} with fence {job.fence + 1}, attempt {job.attempt + 1}", then, skips=True)

    def changes(world: World) -> list[Change]:
        holder = world.workers.get(worker)
        if holder is None or holder.died or holder.expires <= world.clock:
            return []
        return [grant(name, world.jobs[name]) for name in _waiting(world, worker)[: max(0, _room(world))]]

    query = limits.claim(
        worker_id=uid(worker),
        claim_id=uid(claim),
        locked=[NAME],
        queues=json.dumps([{"queue": SERVES[worker], "after": ""}]),
        steps=100,
        limit=10,
        kinds="{work}",
        capabilities="{}",
        leases="{}",
        which="all",
    )
    return Step(
        f"{worker} claims under the limit as {claim}",
        query,
        lambda reply: tuple(f"{name_of(row[1])} with fence {row[9]}, attempt {row[6]}" for row in reply.rows if row[1]),
        changes,
        locks=rows(worker, JOB),
        waits=rows(worker),
        if_previous_changed=True,
    )


def _waiting(world: World, worker: str) -> list[str]:
    pending = [name for name, job in world.jobs.items() if job.live and job.state == "pending"]
    return sorted(name for name in pending if QUEUES[name] == SERVES[worker])


def _room(world: World) -> int:
    return MOST - sum(job.live and job.claim is not None for job in world.jobs.values())
