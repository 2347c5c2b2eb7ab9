"""What people and programs ask for: enqueue, cancel, retry, replay, delete."""

from __future__ import annotations

import json
from collections.abc import Callable
from uuid import UUID

from tenure.store import jobs
from tenure.store.query import Query
from tests.interleavings.names import name_of, uid
from tests.interleavings.sessions import Reply
from tests.interleavings.steps.step import JOB, KEY, QUEUE, Change, Step, Words, rows
from tests.interleavings.world import Job, Key, World

NOT_THE_HOLDER, UNIQUE_VIOLATION = "P0T01", "23505"
REFUSALS = {NOT_THE_HOLDER: "refused", UNIQUE_VIOLATION: "exists already"}
J = UUID(uid("J"))

# Enqueue


def enqueue(name: str, key: str | None = None, *, scope: str = "live", again: bool = False) -> Step:
    def changes(world: World) -> list[Change]:
        if name in world.jobs:
            return [Change("exists already", firm=False)]
        owner = world.owner_of(key) if key else None
        return [_insert(name, key, scope)] if owner is None else [Change(f"{owner} owns the key", firm=False)]

    job = {"id": uid(name), "kind": "work", **({"key": key, "key_for": scope} if key else {})}
    said = f"{name} is enqueued" + (f" with key {key}" if key else "")
    return Step(
        f"{said}, again" if again else said,
        jobs.enqueue(json.dumps([job]), again=again),
        _enqueued,
        changes,
        locks=rows(JOB, KEY),
        waits=rows(JOB, KEY),
        refusals={} if again else REFUSALS,
        repeats=said if again else None,
    )


def child(claim: str, name: str, *, borrowed: bool = False) -> Step:
    """A run enqueues a child job, in its own transaction or in one that the caller passes."""

    def changes(world: World) -> list[Change]:
        job = world.jobs.get("J")
        if job is None or not job.live or job.claim != claim:
            return [Change("refused", firm=False)]
        if name in world.jobs:
            return [Change("exists already", firm=False)]
        return [_insert(name, None, "live")._replace(firm=not borrowed)]

    given = json.dumps([{"id": uid(name), "kind": "work", "parent": uid("J"), "claim": uid(claim)}])
    query = jobs.enqueue(given, borrowed=borrowed)
    return Step(f"{claim} enqueues {name}", query, _enqueued, changes, rows(JOB), rows(JOB), REFUSALS)


def _insert(name: str, key: str | None, scope: str) -> Change:
    def then(world: World) -> World:
        world = world.put("jobs", name, Job("jobs", "pending", key=key))
        return world.put("keys", key, Key(name, scope)) if key else world

    return Change("enqueued", then)


def _enqueued(reply: Reply) -> Words:
    if not reply.rows:
        return ("enqueued",)
    [(asked, owner, _)] = reply.rows
    return ("exists already",) if asked == owner else (f"{name_of(owner)} owns the key",)


# Control


def cancel(*, states: tuple[str, ...] | None = None) -> Step:
    def then(world: World) -> World:
        ended = world.change("J", place="history", state="canceled", claim=None, lease_until=None, run_at=None)
        return ended.add("incidents", "J").add("counts", "canceled")

    def changes(world: World) -> list[Change]:
        meant = world.is_live("J") and (states is None or world.jobs["J"].state in states)
        return [Change("J canceled", then, skips=True)] if meant else []

    said = "cancel J" + (f" if it is {' or '.join(states)}" if states else "")
    # If it may have locked a job that left these states, it notes that in the row of the queue.
    more = (QUEUE,) if states else ()
    return _control(said, jobs.cancel([J], states=states, error="canceled"), changes, "J canceled", 1, *more)


def delete(*, force: bool = False) -> Step:
    def then(world: World) -> World:
        for key in [key for key, row in world.keys.items() if row.job == "J"]:
            world = world.drop("keys", key)
        return world.drop("jobs", "J").drop("progress", "J").drop("incidents", "J")

    def changes(world: World) -> list[Change]:
        job = world.jobs.get("J")
        free = job is not None and (force or not job.live or job.claim is None)
        return [Change("J gone", then, skips=True)] if free else []

    return _control("delete J" + " by force" * force, jobs.delete([J], force=force), changes, "J gone", 1, KEY)


def retry() -> Step:
    def then(world: World) -> World:
        if world.jobs["J"].state != "dead_letter":
            return world.change("J", state="pending", run_at=None).add("incidents", "J")
        return _with_its_key(world).change("J", state="pending", run_at=None, attempt=0, crashes=0).add("incidents", "J")

    def changes(world: World) -> list[Change]:
        waits = world.is_live("J") and world.jobs["J"].state in ("retry", "scheduled", "dead_letter")
        free = waits and (world.jobs["J"].state != "dead_letter" or _may_have_its_key(world))
        return [Change("J pending", then, skips=True)] if free else []

    return _control("retry J", jobs.retry(J, None), changes, "J pending", 1, KEY)


def replay() -> Step:
    def then(world: World) -> World:
        return _with_its_key(world).change("J", state="pending", run_at=None, attempt=0, crashes=0).add("incidents", "J")

    def changes(world: World) -> list[Change]:
        waits = world.is_live("J") and world.jobs["J"].state == "dead_letter"
        return [Change("J pending", then, skips=True)] if waits and _may_have_its_key(world) else []

    return _control("replay J", jobs.replay([J]), changes, "J pending", 2, KEY)


def _may_have_its_key(world: World) -> bool:
    key = world.jobs["J"].key
    return key is None or world.owner_of(key) in (None, "J")


def _with_its_key(world: World) -> World:
    """A dead letter that is to run again takes its key, unless it still owns it."""
    key = world.jobs["J"].key
    if key is None or (key in world.keys and world.keys[key].job == "J"):
        return world
    return world.put("keys", key, Key("J", "live"))


def retry_finished(new: str) -> Step:
    """Reads the old job without locking it: what it saw is enough. While one such job is live, no other is created."""
    key = f"retry of {J}"

    def then(world: World) -> World:
        made = world.put("jobs", new, Job("jobs", "pending", key=key)).put("keys", key, Key(new, "live"))
        return made.add("incidents", "J")

    def changes(world: World) -> list[Change]:
        if "J" not in world.jobs or world.jobs["J"].live:
            return []
        owner = world.owner_of(key)
        return [Change(f"{new} created", then, firm=False) if owner is None else Change(f"{owner} exists", firm=False)]

    def read(reply: Reply) -> Words:
        return tuple(f"{new} created" if row[3] == "f" else f"{name_of(row[2])} exists" for row in reply.rows)

    query = jobs.retry_finished(J, UUID(uid(new)), None)
    return Step(f"run J again as {new}", query, read, changes, locks=rows(KEY), waits=rows(KEY))


def _control(said: str, query: Query, changes: Callable[[World], list[Change]], word: str, moved: int, *more: str) -> Step:
    """The column `moved` is true if the change was made; if not, the row is locked, or in another state."""

    def read(reply: Reply) -> Words:
        return (word,) * sum(row[moved] == "t" for row in reply.rows)

    return Step(said, query, read, changes, locks=rows(JOB, *more), waits=rows(*more))
