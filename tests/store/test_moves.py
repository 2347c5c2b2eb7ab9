"""No statement makes a move that is not in the one table of legal moves."""

from __future__ import annotations

import json
from collections.abc import Callable
from uuid import uuid4

import psycopg
import pytest

from tenure.model.states import FINISHED, FIRST, LEGAL_MOVES, LIVE, State
from tenure.store import jobs, workers
from tests.store.desk import Desk

CLAIM = str(uuid4())
SETTLED_TO = [state for state in State if state in LEGAL_MOVES[State.RUNNING]]


def put(desk: Desk, state: State, worker: str, *, lease: bool = False) -> str:
    """A job in that state, as the schema allows it, due and claimable by all who could."""
    job_id = str(uuid4())
    held = state in (State.CLAIMED, State.RUNNING)
    desk.sql(
        "insert into tenure.jobs (id, kind, state, position, claim_id, worker_id, run_at, lease_until, attempt)"
        " values (%s, 'work', %s, 1, %s, %s, %s::timestamptz, %s::timestamptz, 1)",
        *(job_id, state.value, CLAIM if held else None, worker if held else None),
        *("2020-01-01" if state in (State.SCHEDULED, State.RETRY) else None, "2020-01-01" if held and lease else None),
    )
    return job_id


def outcome(job_id: str, state: State) -> str:
    delay = {"delay": 0} if state in (State.SCHEDULED, State.RETRY) else {}
    return json.dumps([{"id": job_id, "claim_id": CLAIM, "state": state.value, **delay}])


def _claim(desk: Desk, job_id: str, worker: str) -> None:
    desk.claim(desk.worker())


def _settle(state: State) -> Callable[[Desk, str, str], None]:
    def settle(desk: Desk, job_id: str, worker: str) -> None:
        statement = jobs.finish if state in FINISHED else jobs.move
        desk.run(statement(outcome(job_id, state)))

    return settle


def _promote(desk: Desk, job_id: str, worker: str) -> None:
    desk.run(jobs.promote(desk.term("stager"), limit=10))


def _return(desk: Desk, job_id: str, worker: str) -> None:
    desk.condemn(worker)
    desk.return_jobs()


def _return_the_third_time(desk: Desk, job_id: str, worker: str) -> None:
    desk.sql("update tenure.jobs set crashes = 2")
    _return(desk, job_id, worker)


def _expire(desk: Desk, job_id: str, worker: str) -> None:
    desk.sql("update tenure.jobs set lease_until = '2020-01-01' where state in ('claimed', 'running')")
    desk.run(jobs.expire(desk.term("reaper"), limit=10, max_crashes=workers.MAX_CRASHES))


def _expire_the_third_time(desk: Desk, job_id: str, worker: str) -> None:
    desk.sql("update tenure.jobs set crashes = 2")
    _expire(desk, job_id, worker)


def _enqueue_the_same_id(desk: Desk, job_id: str, worker: str) -> None:
    desk.sql("select tenure.enqueue(%s, true)", json.dumps([{"id": job_id, "kind": "work"}]))


STATEMENTS: dict[str, Callable[[Desk, str, str], None]] = {
    "claim": _claim,
    "promote": _promote,
    "return": _return,
    "return the third time": _return_the_third_time,
    "expire": _expire,
    "expire the third time": _expire_the_third_time,
    "enqueue the same id": _enqueue_the_same_id,
    **{f"settle as {state.value}": _settle(state) for state in SETTLED_TO},
}


def test_every_move_a_statement_makes_is_legal(desk):
    moves = {name: {move for before in sorted(LIVE) if (move := _moved(desk, name, before))} for name in STATEMENTS}
    made = set().union(*moves.values())
    reached = set(FIRST) | {after for _, after in made}
    # `claimed` is for prefetched jobs, which no statement makes yet; when one does, this test speaks up.
    assert {(before, after) for before, after in made if before in reached and after not in LEGAL_MOVES[before]} == set()
    # Every statement does something, but for asking for the same id again, which must leave every job alone.
    assert [name for name in STATEMENTS if not moves[name]] == ["enqueue the same id"]


def _moved(desk: Desk, name: str, before: State) -> tuple[State, State] | None:
    for table in ("jobs", "history", "workers", "leases"):
        desk.sql(f"delete from tenure.{table}")
    worker = desk.worker()
    job_id = put(desk, before, worker)
    STATEMENTS[name](desk, job_id, worker)
    [(after,)] = desk.sql("select state from tenure.all_jobs where id = %s", job_id)
    return None if after == before.value else (before, State(after))


def test_a_new_job_is_in_a_first_state(desk):
    desk.enqueue({}, {"delay": 60})
    assert {State(row[0]) for row in desk.sql("select state from tenure.jobs")} <= FIRST


@pytest.mark.parametrize("finished", sorted(FINISHED))
def test_the_table_of_live_jobs_takes_no_finished_one(desk, finished):
    with pytest.raises(psycopg.errors.CheckViolation):
        desk.sql("insert into tenure.jobs (id, kind, state) values (gen_random_uuid(), 'work', %s)", finished.value)


@pytest.mark.parametrize("live", sorted(LIVE))
def test_history_takes_no_live_job(desk, live):
    with pytest.raises(psycopg.errors.CheckViolation):
        desk.sql(
            "insert into tenure.history (id, fence, enqueued_at, finished_at, attempt, max_attempts, priority, crashes, state,"
            " kind, queue, input) values (gen_random_uuid(), 1, now(), now(), 1, 3, 50, 0, %s, 'work', 'default', '{}')",
            live.value,
        )


@pytest.mark.parametrize("state", sorted(LIVE))
def test_a_claim_id_stands_on_held_jobs_and_on_no_others(desk, state):
    held = state in (State.CLAIMED, State.RUNNING)
    with pytest.raises(psycopg.errors.CheckViolation):
        desk.sql(
            "insert into tenure.jobs (id, kind, state, run_at, claim_id) values (gen_random_uuid(), 'work', %s, now(), %s)",
            state.value,
            None if held else CLAIM,
        )


@pytest.mark.parametrize("state", [State.SCHEDULED, State.RETRY])
def test_a_job_for_later_has_a_time(desk, state):
    with pytest.raises(psycopg.errors.CheckViolation):
        desk.sql("insert into tenure.jobs (id, kind, state) values (gen_random_uuid(), 'work', %s)", state.value)


ILLEGAL = {
    "finished but not moved to history": {"state": "completed"},
    "unknown": {"state": "nonsense"},
    "running without a claim": {"state": "running"},
    "retry without a time": {"state": "retry"},
    "more attempts back than spent": {"state": "pending", "refund": 2},
}


@pytest.mark.parametrize("settled", ILLEGAL.values(), ids=ILLEGAL)
def test_an_illegal_move_is_refused_and_nothing_is_written(desk, settled):
    worker = desk.worker()
    job_id = put(desk, State.RUNNING, worker)
    with pytest.raises(psycopg.errors.CheckViolation):
        desk.run(jobs.move(json.dumps([{"id": job_id, "claim_id": CLAIM, **settled}])))
    assert desk.job(job_id)["state"] == "running"


def test_a_run_cannot_finish_into_a_live_state(desk):
    worker = desk.worker()
    job_id = put(desk, State.RUNNING, worker)
    with pytest.raises(psycopg.errors.CheckViolation):
        desk.run(jobs.finish(json.dumps([{"id": job_id, "claim_id": CLAIM, "state": "pending"}])))
    assert desk.job(job_id)["state"] == "running"
