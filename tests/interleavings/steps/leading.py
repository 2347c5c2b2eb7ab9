"""What leaders do: promote, expire, clean, and ask for leases."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import NamedTuple

from tenure.store import cleaning, jobs, leases, workers
from tenure.store.query import Query
from tests.interleavings.names import name_of, uid
from tests.interleavings.sessions import Reply
from tests.interleavings.steps.caretaking import TTL, WORKERS, requeue
from tests.interleavings.steps.step import JOB, KEY, LEASE, QUEUE, Change, Step, Words, counted, rows, times
from tests.interleavings.world import Claim, Lease, Worker, World

DUTY = "duty"


class Term(NamedTuple):
    holder: str
    number: int

    def holds(self, world: World) -> bool:
        lease = world.leases.get(DUTY)
        return lease is not None and (lease.holder, lease.term) == self and lease.expires > world.clock

    def renew(self, world: World) -> World:
        return world.put("leases", DUTY, Lease(self.holder, self.number, world.clock + TTL))

    @property
    def value(self) -> leases.Term:
        return leases.Term(DUTY, uid(self.holder), self.number, TTL)

    def __str__(self) -> str:
        return f"{self.holder} in term {self.number}"


# Duties


def condemn_expired(term: Term) -> Step:
    def end(name: str) -> Change:
        def then(world: World) -> World:
            return world.put("workers", name, world.workers[name]._replace(died="expired"))

        return Change("condemned", then, skips=True)

    def late(world: World) -> list[Change]:
        return [end(name) for name, row in world.workers.items() if not row.died and row.expires <= world.clock]

    query = workers.condemn_expired(term.value, reap=True)
    return _duty(f"{term} condemns expired workers", query, "condemned", _led(term, late), *WORKERS)


def promote(term: Term) -> Step:
    def up(name: str) -> Change:
        return Change("promoted", lambda world: world.change(name, state="pending"), skips=True)

    def due(world: World) -> list[Change]:
        waiting = [(name, job.run_at) for name, job in world.jobs.items() if job.state in ("scheduled", "retry")]
        return [up(name) for name, run_at in waiting if run_at is not None and run_at <= world.clock]

    query = jobs.promote(term.value, limit=100)
    return _duty(f"{term} promotes", query, "promoted", _led(term, due), JOB)


def expire_jobs(term: Term) -> Step:
    def changes(world: World) -> list[Change]:
        if not term.holds(world):
            return []
        late = [name for name, job in world.jobs.items() if job.lease_until is not None and job.lease_until <= world.clock]
        return [requeue(world, name, blame=True) for name in late]

    query = jobs.expire(term.value, limit=100, max_crashes=workers.MAX_CRASHES)
    return Step(
        f"{term} requeues jobs whose own lease has expired",
        query,
        lambda reply: times(reply.rows[0][0], "requeued") + times(reply.rows[0][1], "quarantined"),
        changes,
        locks=rows(LEASE, JOB, QUEUE),
        waits=rows(LEASE, QUEUE),
    )


def condemn_unknown(term: Term) -> Step:
    """Workers that hold jobs and have no row get one, already condemned. Jobs whose claim has none get it, of such a worker."""

    def found(name: str, lost: frozenset[str] = frozenset()) -> Change:
        def then(world: World) -> World:
            if name not in world.workers:
                world = world.put("workers", name, Worker("expired", world.clock))
            if lost and name not in world.claims:
                world = world.put("claims", name, Claim(name, lost))
                for job in lost.intersection(world.held_under(name)):
                    world = world.change(job, worker=name)
            return world

        return Change(f"{name} unknown", then, firm=False)

    def changes(world: World) -> list[Change]:
        if not term.holds(world):
            return []
        holders = {claim.worker for claim in world.claims.values()}
        lost = {job.claim for job in world.jobs.values() if job.live and job.claim is not None} - world.claims.keys()
        return [
            Change("term holds", firm=False),
            *(found(name) for name in sorted(holders - world.workers.keys())),
            *(found(claim, frozenset(world.held_under(claim))) for claim in sorted(lost)),
        ]

    def read(reply: Reply) -> Words:
        [(holds, unknown, _next)] = reply.rows
        names = [f"{name_of(one)} unknown" for one in (unknown or "").strip("{}").split(",") if one]
        return (*times("1" if holds == "t" else "0", "term holds"), *names)

    return Step(
        f"{term} looks for holders that have no row",
        workers.condemn_unknown(term.value),
        read,
        changes,
        locks=rows(LEASE, *WORKERS),
        waits=rows(LEASE, *WORKERS),
    )


def clean_keys(term: Term) -> Step:
    def free(key: str) -> Change:
        return Change("freed", lambda world: world.drop("keys", key), skips=True)

    def idle(world: World) -> list[Change]:
        return [free(key) for key, row in world.keys.items() if row.scope == "live" and not world.is_live(row.job)]

    query = cleaning.clean_keys(term.value, limit=100)
    return _duty(f"{term} cleans keys", query, "freed", _led(term, idle), KEY, column=2)


# Terms


def acquire(holder: str) -> Step:
    def changes(world: World) -> list[Change]:
        lease = world.leases.get(DUTY)
        if lease is not None and lease.expires > world.clock:
            if lease.holder != holder:
                return []
            # A holder shared by several processes gets its term again; the lease is renewed when half of it has passed.
            held = Term(holder, lease.term)
            return [Change(f"term {held.number}", held.renew if lease.expires < world.clock + TTL / 2 else lambda world: world)]
        term = Term(holder, 1 if lease is None else lease.term + 1)
        return [Change(f"term {term.number}", term.renew)]

    return Step(
        f"{holder} asks to lead",
        leases.acquire(uid(holder), [(DUTY, TTL)]),
        lambda reply: tuple(f"term {term}" for term in json.loads(reply.rows[0][0] or "{}").values()),
        changes,
        locks=rows(LEASE),
        waits=rows(LEASE),
    )


def release(term: Term) -> Step:
    def then(world: World) -> World:
        return world.put("leases", DUTY, world.leases[DUTY]._replace(expires=world.clock))

    return Step(
        f"{term} releases its lease",
        leases.release(uid(term.holder), [term.value]),
        lambda reply: counted(reply, "released"),
        lambda world: [Change("released", then)] if term.holds(world) else [],
        locks=rows(LEASE),
        waits=rows(LEASE),
    )


def _led(term: Term, work: Callable[[World], list[Change]]) -> Callable[[World], list[Change]]:
    """Without the term nothing is done."""
    return lambda world: [Change("term holds", lambda same: same), *work(world)] if term.holds(world) else []


def _duty(label: str, query: Query, word: str, changes: Callable[[World], list[Change]], *locks: str, column: int = 1) -> Step:
    """Answers first whether the term holds, then how many rows were changed. Waits for the term only."""

    def read(reply: Reply) -> Words:
        row = reply.rows[0]
        return times("1" if row[0] == "t" else "0", "term holds") + times(row[column], word)

    return Step(label, query, read, changes, locks=rows(LEASE, *locks), waits=rows(LEASE))
