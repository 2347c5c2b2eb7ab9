"""The statements by which people move jobs make legal moves only, and lists share one set of filters."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pytest

import tenure
from tenure.model.states import LIVE, State, may_move
from tenure.store import jobs
from tenure.store.query import Query
from tenure.store.statements import statement
from tests.store.database import Database
from tests.store.forged_jobs import change_state, forge_job
from tests.store.locks import meanwhile, waits_for_a_lock

FOLDER = Path(tenure.__file__).parent / "store" / "sql"

VERBS: dict[str, Callable[[UUID], Query]] = {
    "cancel": lambda job_id: jobs.cancel([job_id], error="canceled"),
    "retry": lambda job_id: jobs.retry(job_id, None),
    "replay": lambda job_id: jobs.replay([job_id]),
}


def put(database: Database, state: State) -> UUID:
    return UUID(forge_job(database.sql, state, run_at="now"))


@pytest.mark.parametrize("verb", VERBS)
def test_every_move_is_legal(database, verb):
    moves = set()
    for before in sorted(LIVE):
        job_id = put(database, before)
        database.run(VERBS[verb](job_id))
        moves.add((before, State(database.job(str(job_id))["state"])))
    made = {(before, after) for before, after in moves if before != after}
    assert {move for move in made if not may_move(*move)} == set()
    assert {before for before, _ in made} == {
        "cancel": LIVE,
        "retry": {State.RETRY, State.SCHEDULED, State.DEAD_LETTER},
        "replay": {State.DEAD_LETTER},
    }[verb]


def test_all_lists_have_the_same_filters():
    blocks = {}
    for path in FOLDER.glob("lists/list_*.sql"):
        [block] = re.findall(r"\(:states::text\[\] is null or .*?x\.input @> :input::jsonb\)", path.read_text("utf-8"), re.DOTALL)
        blocks[path.stem] = re.sub(r"\s+", " ", block)
    assert len(blocks) == 10
    assert len(set(blocks.values())) == 1


def test_jobs_are_found_with_the_same_columns_everywhere():
    columns = {
        name: re.sub(
            r"\s+", " ", re.search(r"select (a\.id, .*?a\.system::text)", (FOLDER / name).read_text("utf-8"), re.DOTALL)[1]
        )
        for name in ("jobs/find_jobs.sql", "jobs/find_job.sql", "reports/explain_job.sql", "reports/find_report.sql")
    }
    assert len(set(columns.values())) == 1


BYSTANDERS: dict[str, Callable[[UUID], Query]] = {
    "retry": lambda job_id: jobs.retry(job_id, None),
    "replay": lambda job_id: jobs.replay([job_id]),
    "cancel by state": lambda job_id: jobs.cancel([job_id], states=["scheduled"], error="canceled"),
}


@pytest.mark.parametrize("verb", BYSTANDERS)
def test_a_pending_job_that_is_not_moved_is_not_locked_either(database, other, verb):
    """A claim skips a locked row, advances its cursor, and would not return to that row for 30 seconds."""
    [job_id] = database.enqueue({})
    with other.connection.transaction():
        other.run(BYSTANDERS[verb](UUID(job_id)))
        assert database.claim(database.worker()).ids == [job_id]


@pytest.mark.parametrize(("verb", "state"), [("retry", "retry"), ("cancel by state", "scheduled"), ("replay", "dead_letter")])
async def test_a_job_that_became_pending_while_it_was_being_locked_makes_workers_look_again(database, other, verb, state):
    """Then the row is locked and yet not moved. Whether a claim stepped over it meanwhile is not known."""
    [job_id] = database.enqueue({})
    change_state(database.sql, state, run_at="now")
    query = BYSTANDERS[verb](UUID(job_id))
    text = statement(query.name, "tenure").replace("skip locked", "")  # so that it can be held right before the lock
    with database.connection.transaction():
        change_state(database.sql, "pending")
        joined = meanwhile(lambda: other.connection.execute(text, query.values).fetchall())
        await waits_for_a_lock(database)
    joined()
    assert database.sql("select state from tenure.jobs where id = %s", job_id) == [("pending",)]
    assert database.sql("select returns from tenure.queues where name = 'default'") == [(1,)]
