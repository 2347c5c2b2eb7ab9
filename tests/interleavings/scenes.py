"""How things stand before a schedule begins. Made by the product's own statements."""

from __future__ import annotations

import json
from collections.abc import Callable

from psycopg.pq import ExecStatus

from tenure.store import leases, workers
from tenure.store.workers import Registration
from tests.interleavings.names import uid
from tests.interleavings.steps import limited as under_limit
from tests.interleavings.steps import runs
from tests.interleavings.steps.caretaking import TTL, condemn, give_back, supervisor
from tests.interleavings.steps.leading import DUTY
from tests.interleavings.steps.step import Step
from tests.store.desk import Desk

Scene = Callable[[Desk], None]
SHORT = 100
"""Seconds, of a lease that is to run out; the others last for TTL."""
LATER = 200
"""Seconds after which a short lease has run out, and no other."""


def empty(desk: Desk) -> None:
    """Two workers, one leader."""
    for name in ("W1", "W2"):
        _enter(desk, name)
    desk.run(leases.acquire(uid("H1"), [(DUTY, TTL)]))


def waiting(desk: Desk) -> None:
    empty(desk)
    _enqueue(desk, "J")


def held(desk: Desk) -> None:
    """W1 runs J."""
    waiting(desk)
    _do(desk, runs.claim("W1", "C1"))


def unknown(desk: Desk) -> None:
    """W1 runs J, and a person has removed its row."""
    held(desk)
    desk.sql("delete from tenure.workers where id = %s", uid("W1"))


def limited(desk: Desk) -> None:
    """J and K, of two queues, wait under a limit of one at a time."""
    empty(desk)
    # Not by `limits.declare`, which tells all claims that limits have changed: those of other scenes would take nothing any more.
    desk.sql(
        "insert into tenure.limits (name, declared) values (%s, %s)", under_limit.NAME, f'{{"concurrency": {under_limit.MOST}}}'
    )
    for name, queue in under_limit.QUEUES.items():
        _enqueue(desk, name, queue=queue)


def limited_held(desk: Desk) -> None:
    """W1 runs J, so that K must wait."""
    limited(desk)
    for step in (under_limit.lock("W1"), under_limit.claim("W1", "C1")):
        _do(desk, step)


def crowded(desk: Desk) -> None:
    """W1 runs J and K, of two queues; W2 runs L and M of the same."""
    empty(desk)
    for worker, claim, first, second in (("W1", "C1", "J", "K"), ("W2", "C2", "L", "M")):
        _enqueue(desk, first)
        _enqueue(desk, second, queue="other")
        _do(desk, runs.claim(worker, claim))


def crowded_condemned(desk: Desk) -> None:
    crowded(desk)
    _do(desk, condemn("W1"))
    _do(desk, condemn("W2"))


def leased(desk: Desk) -> None:
    """W1 runs J, which has a short lease of its own."""
    waiting(desk)
    _do(desk, runs.claim("W1", "C1", lease=SHORT))


def late(desk: Desk) -> None:
    """As `leased`, and the lease has run out."""
    leased(desk)
    _wait(desk)


def overdue(desk: Desk) -> None:
    """W1 runs J, and its own lease has run out."""
    empty(desk)
    _enqueue(desk, "J")
    desk.sql("delete from tenure.workers where id = %s", uid("W1"))
    _enter(desk, "W1", ttl=SHORT)
    _do(desk, runs.claim("W1", "C1"))
    _wait(desk)


def condemned(desk: Desk) -> None:
    """W1 ran J, and is known to be dead."""
    held(desk)
    _do(desk, condemn("W1"))


def suspect(desk: Desk) -> None:
    """W1 runs J, which was in two crashes already."""
    waiting(desk)
    for claim in ("C5", "C6"):
        _do(desk, runs.claim("W1", claim))
        _do(desk, condemn("W1"))
        _do(desk, give_back("W1"))
        _enter(desk, "W1")
    _do(desk, runs.claim("W1", "C1"))


def passed_on(desk: Desk) -> None:
    """W1 ran J and was thought dead; W2 runs it now."""
    condemned(desk)
    _do(desk, give_back("W1"))
    _do(desk, runs.claim("W2", "C2"))


def dead(desk: Desk) -> None:
    """J is a dead letter."""
    held(desk)
    _do(desk, runs.move("C1", "dead_letter"))


def due(desk: Desk) -> None:
    """J is to be retried now."""
    held(desk)
    _do(desk, runs.move("C1", "retry", delay=0))


def done(desk: Desk) -> None:
    held(desk)
    _do(desk, runs.finish("C1"))


def keyed(desk: Desk) -> None:
    """J waits, and stands for the key k."""
    empty(desk)
    _enqueue(desk, "J", key="k", key_for="live")


def keyed_held(desk: Desk) -> None:
    keyed(desk)
    _do(desk, runs.claim("W1", "C1"))


def keyed_done(desk: Desk) -> None:
    keyed_held(desk)
    _do(desk, runs.finish("C1"))


def keyed_dead(desk: Desk) -> None:
    """J is a dead letter, and was the last to have the key k."""
    keyed_held(desk)
    _do(desk, runs.move("C1", "dead_letter"))


def short_term(desk: Desk) -> None:
    """J is to be retried now; the leader's term is short."""
    due(desk)
    desk.sql("delete from tenure.leases")
    desk.run(leases.acquire(uid("H1"), [(DUTY, SHORT)]))


def late_short_term(desk: Desk) -> None:
    """J has let its own lease run out, and the leader's term is short."""
    late(desk)
    desk.sql("delete from tenure.leases")
    desk.run(leases.acquire(uid("H1"), [(DUTY, SHORT)]))


def no_leader(desk: Desk) -> None:
    """J is to be retried now; the leader's term is over."""
    short_term(desk)
    _wait(desk)


def _enter(desk: Desk, worker: str, ttl: int = TTL) -> None:
    registration = Registration(
        id=uid(worker),
        supervisor_id=uid(supervisor(worker)),
        host="here",
        pid=1,
        queues=runs.QUEUES,
        kinds=["work"],
        capabilities=[],
        concurrency=10,
    )
    desk.run(workers.register(registration, ttl))


def _enqueue(desk: Desk, name: str, **more: str) -> None:
    desk.sql("select tenure.enqueue(%s)", json.dumps([{"id": uid(name), "kind": "work", **more}]))


def _do(desk: Desk, step: Step) -> None:
    result = desk.connection.pgconn.exec_params(step.call.sql.encode(), step.call.values)
    assert result.status in (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK), result.get_error_message()


def _wait(desk: Desk) -> None:
    desk.sql("select setval('stage.skew', %s)", LATER)


SCENES: dict[str, Scene] = {
    scene.__name__: scene
    for scene in (
        empty,
        waiting,
        held,
        unknown,
        limited,
        limited_held,
        crowded,
        crowded_condemned,
        leased,
        late,
        overdue,
        condemned,
        suspect,
        passed_on,
        dead,
        due,
        done,
        keyed,
        keyed_held,
        keyed_done,
        keyed_dead,
        short_term,
        late_short_term,
        no_leader,
    )
}
