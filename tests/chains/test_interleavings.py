"""Every order in which sessions can take their steps about one chain and a job that waits for it.

J runs under C1. In every order, when the resolver has nothing left to do:
- the chain of J has exactly one tail, or none if it was deleted;
- a job that waits for it is unblocked at its end, or the end cannot be missed: the live link has the flag;
- nothing is counted twice.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from _pytest.mark import ParameterSet
from psycopg.conninfo import make_conninfo

from tenure.store import blockers, chains, jobs, leases
from tenure.store.jobs import FinishedRuns
from tenure.store.leases import Term
from tenure.store.query import Query
from tests.interleavings.interleaved_database import TIME, InterleavedDatabase
from tests.interleavings.names import uid
from tests.interleavings.orders import Known, number_of_orders, orders
from tests.interleavings.playing import Play
from tests.interleavings.start_states import empty
from tests.interleavings.steps import asking, runs
from tests.interleavings.steps.step import COMMIT, ROLLBACK, Script, Step
from tests.store.database import Database

TERM = Term("resolver", uid("H1"), 1, 600.0)


def step(label: str, query: Query[Any], *, resend_if_empty: bool = False) -> Step:
    """What it may do is judged when all is over, not by its answer."""
    return Step(
        label, query, lambda reply: tuple(str(row[0]) for row in reply.rows), lambda _: [], resend_if_empty=resend_if_empty
    )


def committed(*steps: Step) -> Script:
    return tuple(part for one in steps for part in (one, COMMIT))


def waits(name: str = "W", policy: str = "cancel") -> Step:
    given = [{"id": uid(name), "kind": "work", "after": [uid("J")], "on_failure": policy}]
    return step(f"{name} is enqueued after J", jobs.enqueue(json.dumps(given)))


def continues(link: str = "N", **more: Any) -> Step:
    outcomes = {uid("J"): [uid("C1"), {"id": uid(link), "kind": "work", **more}]}
    given = FinishedRuns(f"{{{uid('J')}}}", f"{{{uid('C1')}}}", json.dumps(outcomes))
    return step(f"C1 continues with {link}", chains.continue_jobs(given), resend_if_empty=True)


ARM = step("arm", blockers.arm(TERM, limit=10))
RESOLVE = step("resolve", blockers.resolve(TERM, limit=10))
UNBLOCK = step("unblock", blockers.unblock(TERM, limit=10))
END = step("end", blockers.end_blocked(TERM, limit=10))
COMPLETE = step("complete J", chains.complete({uid("J"): "7"}, by="ann"))  # type: ignore[dict-item]

SCRIPTS: dict[str, Script] = {
    "W waits": committed(waits()),
    "W waits, rolled back": (waits(), ROLLBACK),
    "V waits": committed(waits("V")),
    "arm": committed(ARM),
    "arm, twice": committed(ARM, ARM),
    "arm, resolve": committed(ARM, RESOLVE),
    "resolve, unblock": committed(RESOLVE, UNBLOCK),
    "resolve, end": committed(RESOLVE, END),
    "settles": committed(runs.finish("C1")),
    "fails": committed(runs.finish("C1", state="failed")),
    "dead-letters": committed(runs.move("C1", "dead_letter")),
    "continues": committed(continues()),
    "waits for its dependant": committed(continues(after=[uid("W")])),
    "complete": committed(COMPLETE),
    "complete, rolled back": (COMPLETE, ROLLBACK),
    "cancel": committed(asking.cancel()),
    "delete": committed(asking.delete(force=True)),
    "replay": committed(asking.replay()),
    "sends heartbeat": committed(runs.note("C1", lease=100)),
}


def held(database: Database) -> None:
    """W1 runs J, and H1 is the resolver."""
    empty(database)
    database.run(leases.acquire(uid("H1"), [("resolver", 600.0)]))
    database.sql("select tenure.enqueue(%s)", json.dumps([{"id": uid("J"), "kind": "work"}]))
    step = runs.claim("W1", "C1")
    assert isinstance(step.sends, Query)
    database.run(step.sends)


def waiting(database: Database) -> None:
    """W waits for J, and that is not armed."""
    held(database)
    query = waits().sends
    assert isinstance(query, Query)
    database.run(query)


def armed(database: Database) -> None:
    waiting(database)
    database.run(blockers.arm(TERM, limit=10))


def dead(database: Database) -> None:
    """W waits until J is replayed."""
    held(database)
    query = waits(policy="wait").sends
    assert isinstance(query, Query)
    database.run(query)
    database.run(blockers.arm(TERM, limit=10))
    outcome = [{"id": uid("J"), "claim_id": uid("C1"), "state": "dead_letter", "error": "broken"}]
    database.run(jobs.move(json.dumps(outcome)))


START: dict[str, Callable[[Database], None]] = {f"chain_{make.__name__}": make for make in (held, waiting, armed, dead)}

CASES = [
    # The end of a chain and a job that is being blocked on it
    ("held", "settles", "W waits", "arm, resolve"),
    ("held", "settles", "W waits, rolled back", "arm"),
    ("held", "fails", "W waits", "arm"),
    ("held", "dead-letters", "W waits", "arm"),
    ("held", "cancel", "W waits", "arm"),
    ("held", "delete", "W waits", "arm"),
    ("waiting", "settles", "arm, twice", "sends heartbeat"),
    ("waiting", "settles", "arm", "V waits"),
    ("waiting", "delete", "arm", "settles"),
    ("waiting", "cancel", "arm", "dead-letters"),
    # A chain that continues meanwhile
    ("held", "continues", "W waits", "arm"),
    ("waiting", "continues", "arm, twice", "sends heartbeat"),
    ("waiting", "continues", "arm", "cancel"),
    ("waiting", "continues", "arm", "delete"),
    ("waiting", "waits for its dependant", "arm, twice"),
    # Completed by a person while it runs
    ("held", "complete", "settles", "W waits"),
    ("waiting", "complete", "settles", "arm"),
    ("waiting", "complete", "continues", "arm"),
    ("waiting", "complete, rolled back", "settles", "arm"),
    ("armed", "complete", "fails", "resolve, unblock"),
    # The end is counted while others decide
    ("armed", "settles", "resolve, unblock", "cancel"),
    ("armed", "settles", "arm, resolve", "V waits"),
    ("armed", "fails", "resolve, end", "V waits"),
    ("armed", "continues", "resolve, unblock", "sends heartbeat"),
    ("dead", "replay", "arm, resolve", "V waits"),
    ("dead", "replay", "cancel", "resolve, end"),
]


@pytest.fixture(scope="module")
def interleaved(server_dsn: str, template: str) -> Iterator[InterleavedDatabase]:
    name = f"chains_{uuid4().hex[:12]}"
    with psycopg.connect(server_dsn, autocommit=True) as admin:
        admin.execute(f"create database {name} template {template}")
        with InterleavedDatabase(make_conninfo(server_dsn, dbname=name)) as made:
            yield made
        admin.execute(f"drop database {name} with (force)")


FEW = 40
"""Orders of a case that is played in any case; the others in `make proof`."""


def cases() -> list[ParameterSet]:
    found = []
    for case in CASES:
        many = number_of_orders([len(SCRIPTS[name]) for name in case[1:]]) > FEW
        found.append(pytest.param(case, id=": ".join([case[0], "; ".join(case[1:])]), marks=[pytest.mark.slow] if many else []))
    return found


@pytest.mark.timeout(600)
@pytest.mark.parametrize("case", cases())
def test_no_end_is_missed_and_no_chain_has_two_tails(interleaved, case):
    state, scripts = f"chain_{case[0]}", [SCRIPTS[name] for name in case[1:]]
    interleaved.keep(state, START[state])
    for session, script in zip(interleaved.sessions, scripts, strict=False):
        session.prepare(["begin", "commit", "rollback", *(one.call.sql for one in script if isinstance(one, Step))])
    known, played = Known(), 0
    with Database(interleaved.dsn, **TIME) as database:
        for order in orders([len(script) for script in scripts]):
            played += 1
            if known.covers(order):
                continue
            interleaved.restore(state)
            with interleaved.reconnecting_after_errors():
                events = Play(interleaved, scripts, known).play(order).events
            log = [f"{case[1 + taken.who]}: {taken.step.label} -> {taken.answer}" for taken in events]
            # To wait for what was deleted is refused.
            assert not [line for line in log if "error" in line and "does not exist" not in line], log
            come_to_rest(database)
            assert problems(database) == [], log
    assert played == number_of_orders([len(script) for script in scripts])


def come_to_rest(database: Database) -> None:
    for _ in range(12):
        done = [database.run(query)[0][1] for query in (one.sends for one in (ARM, RESOLVE, UNBLOCK, END))]
        if not any(done):
            return
    raise AssertionError("the resolver does not come to rest")


def problems(database: Database) -> list[str]:
    found = []
    links = "select id, chain_id, next_id, state from tenure.history union all select id, chain_id, null, state from tenure.jobs"
    tails = database.sql(f"select id from ({links}) l where coalesce(chain_id, id) = %s and next_id is null", uid("J"))
    existed = database.sql(f"select count(*) from ({links}) l where coalesce(chain_id, id) = %s", uid("J")) != [(0,)]
    if len(tails) != int(existed):
        found.append(f"the chain has {len(tails)} tails")
    live = database.sql("select state, dependants from tenure.jobs where %s in (id, chain_id)", uid("J"))
    over = not live or live[0][0] == "dead_letter"
    endings = [row[0] for row in database.sql("select state from tenure.chain_endings where chain_id = %s", uid("J"))]
    replayed = database.sql("select 1 from tenure.incidents where what = 'replayed'")
    for job_id, state, missing, total, policy in database.sql(WAITING, [uid("N")]):
        if missing is not None and not 0 < missing <= total:
            found.append(f"{job_id} waits for {missing} of {total}")
        if over and state == "blocked" and not (policy == "wait" and live):
            found.append(f"{job_id} waits for a chain that has ended")
        if not over and state == "blocked" and not (live[0][1] and database.sql(ARMED, job_id) == [(True,)]):
            found.append(f"{job_id} would miss the end")
        # Who did not want to wait for a dead letter is canceled, even if that is being replayed at the same moment.
        if not over and state != "blocked" and not (state == "canceled" and replayed):
            found.append(f"{job_id} is {state}, but the chain continues")
        if over and state == "pending" and endings != ["completed"]:
            found.append(f"{job_id} runs after a chain that did not complete: {endings}")
        if over and state == "canceled" and endings == ["completed"]:
            found.append(f"{job_id} was canceled, but the chain has completed")
    return found


WAITING = """
    select d.job_id, a.state, d.missing, d.total, d.on_failure
      from tenure.blocked d
      join tenure.all_jobs a on a.id = d.job_id
     where d.job_id <> all (%s::uuid[])"""
ARMED = "select armed from tenure.blockers where job_id = %s"
