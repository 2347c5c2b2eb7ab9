"""What supervisors do: renew and condemn workers, requeue their jobs."""

from __future__ import annotations

from tenure.store import jobs, workers
from tests.interleavings.names import name_of, uid
from tests.interleavings.steps.step import CLAIM, JOB, QUEUE, Change, Step, counted, rows, times
from tests.interleavings.world import Worker, World

TTL = 1000
WORKERS = ("W1", "W2")


def renew(worker: str) -> Step:
    def then(world: World) -> World:
        return world.put("workers", worker, Worker(None, world.clock + TTL))

    return Step(
        f"the supervisor renews {worker}",
        workers.renew([uid(worker)], ["default"], TTL),
        lambda reply: tuple(f"{name_of(one)} renewed" for one in (reply.rows[0][0] or "").strip("{}").split(",") if one),
        lambda world: [Change(f"{worker} renewed", then)] if _alive(world, worker) else [],
        locks=rows(worker),
        waits=rows(worker),
    )


def condemn(worker: str, how: workers.Death = "crashed") -> Step:
    def then(world: World) -> World:
        return world.put("workers", worker, world.workers[worker]._replace(died=how))

    return Step(
        f"the supervisor condemns {worker}",
        workers.condemn(uid(worker), uid(supervisor(worker)), how),
        lambda reply: counted(reply, "condemned"),
        lambda world: [Change("condemned", then)] if _alive(world, worker) else [],
        locks=rows(worker),
        waits=rows(worker),
    )


def supervisor(worker: str) -> str:
    return worker.replace("W", "S")


def return_jobs(worker: str | None = None) -> Step:
    """For one condemned worker, or for all."""

    def forget(claim: str) -> Change:
        return Change(None, lambda world: None if world.held_under(claim) else world.drop("claims", claim))

    def remove(name: str) -> Change:
        return Change(None, lambda world: None if world.claims_of(name) else world.drop("workers", name))

    def changes(world: World) -> list[Change]:
        dead = [name for name, row in world.workers.items() if row.died and worker in (None, name)]
        held = [(job, name) for name in dead for job in world.held_by(name)]
        return [
            *(requeue(world, job, blame=world.workers[name].died != "stopped") for job, name in held),
            *(forget(claim) for name in dead for claim in world.claims_of(name)),
            *(remove(name) for name in dead),
        ]

    return Step(
        f"the jobs of {worker or 'all condemned workers'} are requeued",
        jobs.return_jobs(None if worker is None else uid(worker)),
        lambda reply: times(reply.rows[0][0], "requeued") + times(reply.rows[0][1], "quarantined"),
        changes,
        locks=rows(JOB, QUEUE, CLAIM, *([worker] if worker else WORKERS)),
        waits=rows(QUEUE, CLAIM),
    )


def requeue(world: World, name: str, *, blame: bool) -> Change:
    job = world.jobs[name]
    crashes = job.crashes + blame
    state = "dead_letter" if blame and crashes >= workers.MAX_CRASHES else "pending"

    def then(world: World) -> World:
        attempt = max(job.attempt - 1, 0)
        moved = world.change(name, state=state, claim=None, worker=None, lease_until=None, crashes=crashes, attempt=attempt)
        noted = moved.add("incidents", name)
        return noted.add("counts", state) if state == "dead_letter" else noted

    return Change("requeued" if state == "pending" else "quarantined", then, skips=True)


def _alive(world: World, worker: str) -> bool:
    return worker in world.workers and not world.workers[worker].died
