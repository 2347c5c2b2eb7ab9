"""What a worker does: claim, settle, send heartbeats."""

from __future__ import annotations

import json

from tenure.store import claims, jobs
from tenure.store.claims import HeldJob
from tests.interleavings.names import name_of, uid
from tests.interleavings.sessions import Call
from tests.interleavings.steps.step import CLAIM, JOB, QUEUE, Change, Step, rows, times
from tests.interleavings.world import Job, World
from tests.store.database import claim_query, everything, finished

QUEUES = ("default", "other")
JOBS = ("J", "K", "L", "M")


def claim(worker: str, claim: str, *, lease: int | None = None) -> Step:
    """All pending jobs."""

    def grant(name: str, job: Job) -> Change:
        def then(world: World) -> World:
            return world.claimed(name, claim, worker, None if lease is None else world.clock + lease)

        return Change(f"{name} with fence {job.fence + 1}, attempt {job.attempt + 1}", then, skips=True)

    def changes(world: World) -> list[Change]:
        holder = world.workers.get(worker)
        if holder is None or holder.died or holder.expires <= world.clock:
            return []
        return [grant(name, job) for name, job in world.jobs.items() if job.state == "pending"]

    query = claim_query(
        uid(worker),
        uid(claim),
        lanes=[everything(queue) for queue in QUEUES],
        leases=None if lease is None else {"work": lease},
    )
    return Step(
        f"{worker} claims as {claim}",
        query,
        lambda reply: tuple(f"{name_of(row[1])} with fence {row[9]}, attempt {row[6]}" for row in reply.rows if row[1]),
        changes,
        locks=rows(worker, JOB),
        waits=rows(worker),
    )


def finish(claim: str, *names: str, state: str = "completed") -> Step:
    def end(name: str) -> Change:
        def then(world: World) -> World:
            ended = world.change(name, place="history", state=state, lease_until=None, run_at=None)
            return ended.add("counts", state)

        return Change(f"{name} {state}", then)

    names = names or ("J",)
    outcomes = finished([(uid(name), uid(claim)) for name in names], state=state)
    return Step(
        f"{claim} settles {' '.join(names)} as {state}",
        jobs.finish(outcomes),
        lambda reply: tuple(f"{name_of(row[0])} {state}" for row in reply.rows),
        lambda world: [end(name) for name in names if _holds(world, name, claim) and claim in world.claims],
        locks=rows(JOB),
        waits=rows(JOB),
        resend_if_empty=True,
    )


def move(claim: str, state: str, *names: str, delay: int | None = None, refund: int = 0) -> Step:
    def end(name: str) -> Change:
        def then(world: World) -> World:
            due = None if delay is None else world.clock + delay
            moved = world.change(name, state=state, claim=None, worker=None, lease_until=None, run_at=due)
            moved = moved.change(name, attempt=world.jobs[name].attempt - refund).add("incidents", name)
            return moved.add("counts", state) if state in ("retry", "dead_letter") else moved

        return Change(f"{name} {state}", then)

    names = names or ("J",)
    outcome = {
        "claim_id": uid(claim),
        "state": state,
        "what": "requeued" if refund else "failed",
        "delay": delay,
        "refund": refund,
    }
    return Step(
        f"{claim} moves {' '.join(names)} to {state}",
        jobs.move(json.dumps([{"id": uid(name), **outcome} for name in names])),
        lambda reply: tuple(f"{name_of(row[0])} {state}" for row in reply.rows),
        lambda world: [end(name) for name in names if _holds(world, name, claim)],
        locks=rows(JOB, QUEUE),
        waits=rows(JOB, QUEUE),
        resend_if_empty=True,
    )


def requeue(claim: str, *names: str) -> Step:
    return move(claim, "pending", *names, refund=1)


def note(claim: str, *, lease: int | None = None, percent: int | None = None) -> Step:
    """A heartbeat, which extends the job's own lease, or progress."""

    def then(world: World) -> World:
        if lease is not None:
            world = world.change("J", lease_until=world.clock + lease)
        return world if percent is None else world.put("progress", "J", (world.jobs["J"].fence, percent))

    given = {"id": uid("J"), "claim_id": uid(claim), "lease": lease, "percent": percent}
    return Step(
        f"{claim} {'sends a heartbeat' if lease else 'reports progress'} for J",
        jobs.write_updates(json.dumps([given]), 200),
        lambda reply: tuple(f"{name_of(row[0])} is ours" for row in reply.rows),
        lambda world: [Change("J is ours", then, skips=True)] if _holds(world, "J", claim) else [],
        locks=rows(JOB),
    )


def disown(worker: str, claim: str) -> Step:
    """The answer to this claim was lost: the jobs that it took are requeued."""

    def requeued(name: str) -> Change:
        def then(world: World) -> World:
            attempt = world.jobs[name].attempt - 1
            return world.change(name, state="pending", claim=None, worker=None, lease_until=None, attempt=attempt)

        return Change("requeued", then, skips=True)

    return Step(
        f"{worker} requeues what {claim} took",
        claims.disown([HeldJob(uid(name), uid(claim)) for name in JOBS], QUEUES),
        lambda reply: times(len(reply.rows), "requeued"),
        lambda world: [requeued(name) for name in world.jobs if _holds(world, name, claim)],
        locks=rows(JOB, QUEUE),
        waits=rows(QUEUE),
    )


def forget(worker: str) -> Step:
    """Removes the rows of its claims under which no job is held any more."""

    def ended(claim: str) -> Change:
        def then(world: World) -> World | None:
            return None if world.held_under(claim) or claim not in world.claims else world.drop("claims", claim)

        return Change("forgotten", then, skips=True)

    return Step(
        f"{worker} forgets its claims",
        claims.forget(uid(worker), []),
        lambda reply: times(reply.rows[0][0], "forgotten"),
        lambda world: [ended(claim) for claim in world.claims_of(worker) if not world.held_under(claim)],
        locks=rows(CLAIM),
    )


def find_settled(claim: str) -> Step:
    def ask(world: World) -> list[Change]:
        job = world.jobs.get("J")
        return [Change("yes" if job and not job.live and job.claim == claim else "no", firm=False)]

    return Step(
        f"{claim} asks whether it has settled J",
        jobs.find_settled(json.dumps([{"id": uid("J"), "claim_id": uid(claim)}])),
        lambda reply: ("yes" if reply.rows else "no",),
        ask,
    )


def effect(claim: str) -> Step:
    """What a handler writes in its own transaction."""
    wire = (uid("J").encode(), uid(claim).encode())

    def changes(world: World) -> list[Change]:
        def then(world: World) -> World:
            return world.with_effect("J", claim)

        return [Change("written", then)]

    return Step(
        f"{claim} writes for J",
        Call("insert into injected.effects values ($1, $2)", wire),
        lambda reply: ("written",) * reply.touched,
        changes,
    )


def _holds(world: World, name: str, claim: str) -> bool:
    return world.is_live(name) and world.jobs[name].claim == claim
