"""The state of the database before a schedule begins. Made by the product's own statements."""

from __future__ import annotations

import json
from collections.abc import Callable

from psycopg.pq import ExecStatus

from tenure.store import leases, workers
from tenure.store.workers import Registration
from tests.interleavings.names import uid
from tests.interleavings.steps import limited as under_limit
from tests.interleavings.steps import runs
from tests.interleavings.steps.caretaking import TTL, condemn, return_jobs, supervisor
from tests.interleavings.steps.leading import DUTY
from tests.interleavings.steps.step import Step
from tests.store.database import Database

StartState = Callable[[Database], None]
SHORT = 100
"""Seconds, of a lease that is to run out; the others last for TTL."""
LATER = 200
"""Seconds after which a short lease has run out, and no other."""


def empty(database: Database) -> None:
    """Two workers, one leader."""
    for name in ("W1", "W2"):
        _enter(database, name)
    database.run(leases.acquire(uid("H1"), [(DUTY, TTL)]))


def waiting(database: Database) -> None:
    empty(database)
    _enqueue(database, "J")


def held(database: Database) -> None:
    """W1 runs J."""
    waiting(database)
    _do(database, runs.claim("W1", "C1"))


def unknown(database: Database) -> None:
    """W1 runs J, and a person has removed its row."""
    held(database)
    database.sql("delete from tenure.workers where id = %s", uid("W1"))


def unclaimed(database: Database) -> None:
    """W1 runs J, and a person has removed the row of its claim."""
    held(database)
    database.sql("delete from tenure.claims where id = %s", uid("C1"))


def limited(database: Database) -> None:
    """J and K, of two queues, wait under a limit of one at a time."""
    empty(database)
    # Not by `limits.declare`, which announces to all claims that limits have changed: other start states would claim nothing.
    database.sql(
        "insert into tenure.limits (name, declared) values (%s, %s)", under_limit.NAME, f'{{"concurrency": {under_limit.MOST}}}'
    )
    for name, queue in under_limit.QUEUES.items():
        _enqueue(database, name, queue=queue)


def limited_held(database: Database) -> None:
    """W1 runs J, so that K must wait."""
    limited(database)
    for step in (under_limit.lock("W1"), under_limit.claim("W1", "C1")):
        _do(database, step)


def crowded(database: Database) -> None:
    """W1 runs J and K, of two queues; W2 runs L and M of the same."""
    empty(database)
    for worker, claim, first, second in (("W1", "C1", "J", "K"), ("W2", "C2", "L", "M")):
        _enqueue(database, first)
        _enqueue(database, second, queue="other")
        _do(database, runs.claim(worker, claim))


def crowded_condemned(database: Database) -> None:
    crowded(database)
    _do(database, condemn("W1"))
    _do(database, condemn("W2"))


def leased(database: Database) -> None:
    """W1 runs J, which has a short lease of its own."""
    waiting(database)
    _do(database, runs.claim("W1", "C1", lease=SHORT))


def late(database: Database) -> None:
    """As `leased`, and the lease has run out."""
    leased(database)
    _wait(database)


def overdue(database: Database) -> None:
    """W1 runs J, and its own lease has run out."""
    empty(database)
    _enqueue(database, "J")
    database.sql("delete from tenure.workers where id = %s", uid("W1"))
    _enter(database, "W1", ttl=SHORT)
    _do(database, runs.claim("W1", "C1"))
    _wait(database)


def condemned(database: Database) -> None:
    """W1 ran J, and is condemned."""
    held(database)
    _do(database, condemn("W1"))


def suspect(database: Database) -> None:
    """W1 runs J, which was in two crashes already."""
    waiting(database)
    for claim in ("C5", "C6"):
        _do(database, runs.claim("W1", claim))
        _do(database, condemn("W1"))
        _do(database, return_jobs("W1"))
        _enter(database, "W1")
    _do(database, runs.claim("W1", "C1"))


def passed_on(database: Database) -> None:
    """W1 ran J and was condemned; W2 runs it now."""
    condemned(database)
    _do(database, return_jobs("W1"))
    _do(database, runs.claim("W2", "C2"))


def dead(database: Database) -> None:
    """J is a dead letter."""
    held(database)
    _do(database, runs.move("C1", "dead_letter"))


def due(database: Database) -> None:
    """J is to be retried now."""
    held(database)
    _do(database, runs.move("C1", "retry", delay=0))


def done(database: Database) -> None:
    held(database)
    _do(database, runs.finish("C1"))


def keyed(database: Database) -> None:
    """J is pending and owns the key k."""
    empty(database)
    _enqueue(database, "J", key="k", key_for="live")


def keyed_held(database: Database) -> None:
    keyed(database)
    _do(database, runs.claim("W1", "C1"))


def keyed_done(database: Database) -> None:
    keyed_held(database)
    _do(database, runs.finish("C1"))


def keyed_dead(database: Database) -> None:
    """J is a dead letter, and was the last to own the key k."""
    keyed_held(database)
    _do(database, runs.move("C1", "dead_letter"))


def short_term(database: Database) -> None:
    """J is to be retried now; the leader's term is short."""
    due(database)
    database.sql("delete from tenure.leases")
    database.run(leases.acquire(uid("H1"), [(DUTY, SHORT)]))


def late_short_term(database: Database) -> None:
    """J has let its own lease run out, and the leader's term is short."""
    late(database)
    database.sql("delete from tenure.leases")
    database.run(leases.acquire(uid("H1"), [(DUTY, SHORT)]))


def no_leader(database: Database) -> None:
    """J is to be retried now; the leader's term is over."""
    short_term(database)
    _wait(database)


def _enter(database: Database, worker: str, ttl: int = TTL) -> None:
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
    database.run(workers.register(registration, ttl))


def _enqueue(database: Database, name: str, **more: str) -> None:
    database.sql("select tenure.enqueue(%s)", json.dumps([{"id": uid(name), "kind": "work", **more}]))


def _do(database: Database, step: Step) -> None:
    result = database.connection.pgconn.exec_params(step.call.sql.encode(), step.call.values)
    assert result.status in (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK), result.get_error_message()


def _wait(database: Database) -> None:
    database.sql("select setval('injected.skew', %s)", LATER)


START_STATES: dict[str, StartState] = {
    start_state.__name__: start_state
    for start_state in (
        empty,
        waiting,
        held,
        unknown,
        unclaimed,
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
