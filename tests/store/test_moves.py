"""No statement makes a move that is not in the one table of legal moves."""

from __future__ import annotations

import json
from collections.abc import Callable
from uuid import uuid4

import psycopg
import pytest

from tenure.model.states import FINISHED, FIRST, LEGAL_MOVES, LIVE, State
from tenure.store import jobs, workers
from tests.store.database import Database

CLAIM = str(uuid4())
SETTLED_TO = [state for state in State if state in LEGAL_MOVES[State.RUNNING]]


def put(database: Database, state: State, worker: str, *, lease: bool = False) -> str:
    """A job in that state, as the schema allows it, due and claimable by all who could."""
    job_id = str(uuid4())
    held = state in (State.CLAIMED, State.RUNNING)
    database.sql(
        "insert into tenure.jobs (id, kind, state, position, claim_id, worker_id, run_at, lease_until, attempt)"
        " values (%s, 'work', %s, 1, %s, %s, %s::timestamptz, %s::timestamptz, 1)",
        *(job_id, state.value, CLAIM if held else None, worker if held else None),
        *("2020-01-01" if state in (State.SCHEDULED, State.RETRY) else None, "2020-01-01" if held and lease else None),
    )
    return job_id


def outcome(job_id: str, state: State) -> str:
    delay = {"delay": 0} if state in (State.SCHEDULED, State.RETRY) else {}
    return json.dumps([{"id": job_id, "claim_id": CLAIM, "state": state.value, **delay}])


def _claim(database: Database, job_id: str, worker: str) -> None:
    database.claim(database.worker())


def _settle(state: State) -> Callable[[Database, str, str], None]:
    def settle(database: Database, job_id: str, worker: str) -> None:
        statement = jobs.finish if state in FINISHED else jobs.move
        database.run(statement(outcome(job_id, state)))

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
    database.sql("update tenure.jobs set lease_until = '2020-01-01' where state in ('claimed', 'running')")
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
    # `claimed` is for prefetched jobs, which no statement makes yet; when one does, this test speaks up.
    assert {(before, after) for before, after in made if before in reached and after not in LEGAL_MOVES[before]} == set()
    # Every statement does something, but for asking for the same id again, which must leave every job alone.
    assert [name for name in STATEMENTS if not moves[name]] == ["enqueue the same id"]


def _moved(database: Database, name: str, before: State) -> tuple[State, State] | None:
    for table in ("jobs", "history", "workers", "leases"):
        database.sql(f"delete from tenure.{table}")
    worker = database.worker()
    job_id = put(database, before, worker)
    STATEMENTS[name](database, job_id, worker)
    [(after,)] = database.sql("select state from tenure.all_jobs where id = %s", job_id)
    return None if after == before.value else (before, State(after))


def test_a_new_job_is_in_a_first_state(database):
    database.enqueue({}, {"delay": 60})
    assert {State(row[0]) for row in database.sql("select state from tenure.jobs")} <= FIRST


@pytest.mark.parametrize("finished", sorted(FINISHED))
def test_the_table_of_live_jobs_takes_no_finished_one(database, finished):
    with pytest.raises(psycopg.errors.CheckViolation):
        database.sql("insert into tenure.jobs (id, kind, state) values (gen_random_uuid(), 'work', %s)", finished.value)


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
    held = state in (State.CLAIMED, State.RUNNING)
    with pytest.raises(psycopg.errors.CheckViolation):
        database.sql(
            "insert into tenure.jobs (id, kind, state, run_at, claim_id) values (gen_random_uuid(), 'work', %s, now(), %s)",
            state.value,
            None if held else CLAIM,
        )


@pytest.mark.parametrize("state", [State.SCHEDULED, State.RETRY])
def test_a_job_for_later_has_a_time(database, state):
    with pytest.raises(psycopg.errors.CheckViolation):
        database.sql("insert into tenure.jobs (id, kind, state) values (gen_random_uuid(), 'work', %s)", state.value)


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
        database.run(jobs.finish(json.dumps([{"id": job_id, "claim_id": CLAIM, "state": "pending"}])))
    assert database.job(job_id)["state"] == "running"
