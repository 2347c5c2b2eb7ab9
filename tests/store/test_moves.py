"""No statement makes a move that is not in the one table of legal moves."""

from __future__ import annotations

import json
from collections.abc import Callable
from uuid import uuid4

import psycopg
import pytest

from tenure.model.states import FINISHED, FIRST, HELD, LEGAL_MOVES, LIVE, State
from tenure.store import jobs, workers
from tests.store.database import Database, finished
from tests.store.forged_jobs import forge_job, position_of

CLAIM = str(uuid4())
SETTLED_TO = [state for state in State if state in LEGAL_MOVES[State.RUNNING]]


def put(database: Database, state: State, worker: str, *, lease: bool = False) -> str:
    """A job in that state, as the schema allows it, due and claimable by all who could."""
    run_at = "2020-01-01" if state in (State.SCHEDULED, State.RETRY) else None
    lease_until = "2020-01-01" if lease and state in HELD else None
    claim_id = CLAIM if state in HELD else None
    return forge_job(database.sql, state, worker_id=worker, claim_id=claim_id, run_at=run_at, lease_until=lease_until, attempt=1)


def _claim(database: Database, job_id: str, worker: str) -> None:
    database.claim(database.worker())


def _settle(state: State) -> Callable[[Database, str, str], None]:
    def settle(database: Database, job_id: str, worker: str) -> None:
        if state in FINISHED:
            database.run(jobs.finish(finished([(job_id, CLAIM)], state=state)))
            return
        delay = {"delay": 0} if state in (State.SCHEDULED, State.RETRY) else {}
        database.run(jobs.move(json.dumps([{"id": job_id, "claim_id": CLAIM, "state": state, **delay}])))

    return settle


def _promote(database: Database, job_id: str, worker: str) -> None:
    database.run(jobs.promote(database.term("stager"), limit=10))


def _return(database: Database, job_id: str, worker: str) -> None:
    database.condemn(worker)
    database.return_jobs()


def _return_the_third_time(database: Database, job_id: str, worker: str) -> None:
    database.sql("update tenure.jobs set crashes = 2")
    _return(database, job_id, worker)


def _expire(database: Database, job_id: str, worker: str) -> None:
    database.sql("update tenure.jobs set lease_until = '2020-01-01' where state = 'running'")
    database.run(jobs.expire(database.term("reaper"), limit=10, max_crashes=workers.MAX_CRASHES))


def _expire_the_third_time(database: Database, job_id: str, worker: str) -> None:
    database.sql("update tenure.jobs set crashes = 2")
    _expire(database, job_id, worker)


def _enqueue_the_same_id(database: Database, job_id: str, worker: str) -> None:
    database.sql("select tenure.enqueue(%s, true)", json.dumps([{"id": job_id, "kind": "work"}]))


STATEMENTS: dict[str, Callable[[Database, str, str], None]] = {
    "claim": _claim,
    "promote": _promote,
    "return": _return,
    "return the third time": _return_the_third_time,
    "expire": _expire,
    "expire the third time": _expire_the_third_time,
    "enqueue the same id": _enqueue_the_same_id,
    **{f"settle as {state.value}": _settle(state) for state in SETTLED_TO},
}


def test_every_move_a_statement_makes_is_legal(database):
    moves = {name: {move for before in sorted(LIVE) if (move := _moved(database, name, before))} for name in STATEMENTS}
    made = set().union(*moves.values())
    reached = set(FIRST) | {after for _, after in made}
    assert {(before, after) for before, after in made if before in reached and after not in LEGAL_MOVES[before]} == set()
    # Every statement does something, but for asking for the same id again, which must leave every job alone.
    assert [name for name in STATEMENTS if not moves[name]] == ["enqueue the same id"]


def _moved(database: Database, name: str, before: State) -> tuple[State, State] | None:
    for table in ("jobs", "claims", "history", "workers", "leases"):
        database.sql(f"delete from tenure.{table}")
    worker = database.worker()
    job_id = put(database, before, worker)
    STATEMENTS[name](database, job_id, worker)
    [(after,)] = database.sql("select state from tenure.all_jobs where id = %s", job_id)
    return None if after == before.value else (before, State(after))


def test_a_new_job_is_in_a_first_state(database):
    database.enqueue({}, {"delay": 60})
    assert {State(row[0]) for row in database.sql("select state from tenure.jobs")} <= FIRST


def insert(database: Database, state: str, position: str, *, claim_id: str | None = None, run_at: str | None = "now") -> None:
    database.sql(
        f"insert into tenure.jobs (id, kind, state, position, claim_id, run_at) values (%s, 'work', %s, {position}, %s, %s)",
        *(uuid4(), state, claim_id, run_at),
    )


@pytest.mark.parametrize("position", [1, 0, -1, -2])
@pytest.mark.parametrize("state", sorted(FINISHED))
def test_the_table_of_live_jobs_takes_no_finished_one(database, state, position):
    for claim_id in (None, CLAIM):
        with pytest.raises(psycopg.errors.CheckViolation):
            insert(database, state, str(position), claim_id=claim_id)


@pytest.mark.parametrize("live", sorted(LIVE))
def test_history_takes_no_live_job(database, live):
    with pytest.raises(psycopg.errors.CheckViolation):
        database.sql(
            "insert into tenure.history (id, fence, enqueued_at, finished_at, attempt, max_attempts, priority, crashes, state,"
            " kind, queue, input) values (gen_random_uuid(), 1, now(), now(), 1, 3, 50, 0, %s, 'work', 'default', '{}')",
            live.value,
        )


@pytest.mark.parametrize("state", sorted(LIVE))
def test_a_claim_id_stands_on_held_jobs_and_on_no_others(database, state):
    position = position_of(f"'{state}'")
    right, wrong = (CLAIM, None) if state in HELD else (None, CLAIM)
    with pytest.raises(psycopg.errors.CheckViolation):
        insert(database, state, position, claim_id=wrong)
    insert(database, state, position, claim_id=right)


FITTING = {
    State.PENDING: [1, 2**62],
    State.RUNNING: [1, 2**62],
    State.SCHEDULED: [0],
    State.RETRY: [0],
    State.DEAD_LETTER: [-1],
    State.BLOCKED: [-2],
    State.WAITING: [0, -2],  # for an event until a time, or without one
}


@pytest.mark.parametrize("state", sorted(LIVE))
def test_the_position_fits_the_state(database, state):
    """Every index goes by the position alone: one that does not fit would hide the job from its statements."""
    claim_id = CLAIM if state in HELD else None
    for position in (1, 2**62, 0, -1, -2):
        if position in FITTING[state]:
            insert(database, state, str(position), claim_id=claim_id)
        else:
            with pytest.raises(psycopg.errors.CheckViolation):
                insert(database, state, str(position), claim_id=claim_id)


@pytest.mark.parametrize("state", [State.SCHEDULED, State.RETRY])
def test_a_job_for_later_has_a_time(database, state):
    with pytest.raises(psycopg.errors.CheckViolation):
        insert(database, state, "0", run_at=None)
    insert(database, state, "0")


ILLEGAL = {
    "finished but not moved to history": {"state": "completed"},
    "unknown": {"state": "nonsense"},
    "running without a claim": {"state": "running"},
    "retry without a time": {"state": "retry"},
    "more attempts back than spent": {"state": "pending", "refund": 2},
}


@pytest.mark.parametrize("settled", ILLEGAL.values(), ids=ILLEGAL)
def test_an_illegal_move_is_refused_and_nothing_is_written(database, settled):
    worker = database.worker()
    job_id = put(database, State.RUNNING, worker)
    with pytest.raises(psycopg.errors.CheckViolation):
        database.run(jobs.move(json.dumps([{"id": job_id, "claim_id": CLAIM, **settled}])))
    assert database.job(job_id)["state"] == "running"


def test_a_run_cannot_finish_into_a_live_state(database):
    worker = database.worker()
    job_id = put(database, State.RUNNING, worker)
    with pytest.raises(psycopg.errors.CheckViolation):
        database.run(jobs.finish(finished([(job_id, CLAIM)], state="pending")))
    assert database.job(job_id)["state"] == "running"
