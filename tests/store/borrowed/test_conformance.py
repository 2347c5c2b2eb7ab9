"""Our statements on the connection of a caller: the same promises with every driver."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy.exc import PendingRollbackError

from tenure.model.errors import ConfigError, SchemaMismatch, StoreUnavailable
from tenure.store import history, jobs, workers
from tenure.store.faults import Refused
from tenure.store.jobs import ExistingJobRow
from tenure.store.link import Link
from tenure.store.query import Query, T
from tenure.store.target import DatabaseTarget
from tenure.store.workers import Registration
from tests.store.borrowed.callers import CALLERS, AsyncCaller, Caller, Django
from tests.store.database import claim_query, everything, finished

NASTY = "100% %s %(name)s %% :colon ::text $1 $$ ? 'single' \"double\" \\ \\' \\n {brace} \t\r\n é 漢字 🎉 -- /* ; */"


def enqueue(*kinds: str, **more: Any) -> Query[ExistingJobRow]:
    return jobs.enqueue(json.dumps([{"kind": kind, **more} for kind in kinds]))


class UndoError(Exception):
    pass


def insert(caller: Caller, name: str) -> None:
    caller.run(f"insert into public.orders values ('{name}')")


def lose(caller: Caller, sql: Any) -> None:
    assert sql("select pg_terminate_backend(%s, 5000)", caller.pid()) == [(True,)]


def test_a_commit_brings_the_job_with_the_callers_row(caller, orders, kinds):
    with caller.transaction():
        insert(caller, "mine")
        assert caller.fetch(enqueue("ship")) == []
    assert (orders(), kinds()) == (["mine"], ["ship"])


def test_a_rollback_takes_both(caller, orders, kinds):
    with suppress(UndoError), caller.transaction():
        insert(caller, "mine")
        caller.fetch(enqueue("ship"))
        raise UndoError
    assert (orders(), kinds()) == ([], [])


def test_no_other_session_sees_it_before_the_commit(caller, orders, kinds):
    with caller.transaction():
        caller.fetch(enqueue("ship"))
        assert kinds() == []
        assert caller.run("select kind from tenure.all_jobs") == [("ship",)]
    assert kinds() == ["ship"]


def test_a_savepoint_rolled_back_takes_its_job_only(caller, orders, kinds):
    with caller.transaction():
        caller.fetch(enqueue("kept"))
        with suppress(UndoError), caller.savepoint():
            insert(caller, "mine")
            caller.fetch(enqueue("undone"))
            raise UndoError
        with caller.savepoint():
            caller.fetch(enqueue("released"))
    assert (orders(), kinds()) == ([], ["kept", "released"])


def test_refused_input_is_reported_and_the_caller_continues_after_a_rollback(caller, orders, kinds):
    with pytest.raises(Refused) as refused, caller.transaction():
        insert(caller, "mine")
        caller.fetch(enqueue(""))
    assert refused.value.sqlstate == "23514"
    # The words of PostgreSQL alone: those of SQLAlchemy have the whole statement and the user's data.
    assert "tenure.enqueue" not in str(refused.value).splitlines()[0]
    with caller.transaction():
        insert(caller, "second")
        caller.fetch(enqueue("ship"))
    assert (orders(), kinds()) == (["second"], ["ship"])


def test_input_refused_in_a_savepoint_costs_only_the_savepoint(caller, orders, kinds):
    with caller.transaction():
        insert(caller, "mine")
        with pytest.raises(Refused), caller.savepoint():
            caller.fetch(enqueue(""))
        caller.fetch(enqueue("ship"))
    assert (orders(), kinds()) == (["mine"], ["ship"])


@pytest.mark.parametrize("ascii_only", [True, False])
def test_any_text_arrives_as_it_is(caller, sql, ascii_only):
    text = json.dumps([{"kind": "ship", "input": {"text": NASTY, NASTY: 1}}], ensure_ascii=ascii_only)
    with caller.transaction():
        caller.fetch(jobs.enqueue(text))
    assert sql("select input from tenure.all_jobs") == [({"text": NASTY, NASTY: 1},)]


def test_rows_are_those_of_a_link(caller, dsn):
    ids = [str(uuid4()), str(uuid4())]
    query = jobs.enqueue(json.dumps([{"kind": "ship", "id": job_id} for job_id in ids]), again=True)
    with caller.transaction():
        assert caller.fetch(query) == []
    with caller.transaction():
        found = caller.fetch(query)
    assert found == asyncio.run(by_link(dsn, query))
    assert sorted(row[0] for row in found) == sorted(ids)
    assert {type(row) for row in found} == {ExistingJobRow}


async def by_link(dsn: str, query: Query[T]) -> list[T]:
    link = Link(DatabaseTarget.at(dsn), "test")
    try:
        return await link.fetch(query)
    finally:
        await link.close()


def test_a_statement_without_rows_gives_none(caller):
    with caller.transaction():
        assert caller.fetch(history.declare_retentions({})) == []


def test_values_of_every_type_can_be_passed(caller, sql):
    now = datetime(2020, 2, 29, 12, 30, 15, 123456, tzinfo=UTC)
    lead_a_life(caller, now)
    assert sql("select state, output, finished_at from tenure.all_jobs") == [("completed", {"n": 1}, now)]


def lead_a_life(caller: Caller, now: datetime) -> None:
    """Registered, claimed and finished through the caller: uuids, arrays, JSON, numbers, times and nulls."""
    worker_id, job_id = str(uuid4()), str(uuid4())
    registration = Registration(
        id=worker_id,
        supervisor_id=str(uuid4()),
        host="here",
        pid=1,
        queues=["default"],
        kinds=["ship"],
        capabilities=[],
        concurrency=10,
        version="0",
    )
    claim = claim_query(worker_id, str(uuid4()), lanes=[everything()], kinds=["ship", 'a "b" \\ c'])
    runs = finished([(job_id, claim.values["claim_id"])], output={"n": 1})
    with caller.transaction():
        caller.fetch(workers.register(registration, 600.5))
        caller.fetch(enqueue("ship", id=job_id))
    with caller.transaction():
        assert [str(row.job.id) for row in caller.fetch(claim)[1:]] == [job_id]
        assert [row[0] for row in caller.fetch(jobs.finish(runs, now=now))] == [job_id]


def test_a_missing_schema_is_reported_with_the_way_out(caller):
    with pytest.raises(SchemaMismatch, match="tenure migrate"), caller.transaction():
        caller.fetch(enqueue("ship"), "nowhere")


def test_a_lost_connection_is_reported_as_such(caller, sql, kinds):
    told: list[BaseException] = []
    # How the driver ends the block afterwards is its own affair.
    with suppress(Exception), caller.transaction():
        lose(caller, sql)
        with pytest.raises(StoreUnavailable) as error:
            caller.fetch(enqueue("ship"))
        told.append(error.value)
        raise UndoError
    assert told
    assert kinds() == []


def test_begin_and_commit_end_the_transaction(ender, orders, kinds):
    ender.begin()
    insert(ender, "mine")
    ender.fetch(enqueue("ship"))
    assert (orders(), kinds()) == ([], [])
    ender.commit()
    assert (orders(), kinds()) == (["mine"], ["ship"])


def test_begin_and_rollback_end_the_transaction(ender, orders, kinds):
    ender.begin()
    insert(ender, "mine")
    ender.fetch(enqueue("ship"))
    ender.rollback()
    ender.begin()
    ender.fetch(enqueue("second"))
    ender.commit()
    assert (orders(), kinds()) == ([], ["second"])


def test_begin_twice_is_begin_once(ender, kinds):
    ender.begin()
    ender.fetch(enqueue("ship"))
    ender.begin()
    ender.commit()
    assert kinds() == ["ship"]


def test_a_block_of_the_callers_after_begin_does_not_commit_by_itself(ender, orders):
    ender.begin()
    with ender.savepoint():
        insert(ender, "mine")
    assert orders() == []
    ender.rollback()
    assert orders() == []


def test_a_refusal_in_a_transaction_of_ours_leaves_it_to_be_rolled_back(ender, orders, kinds):
    ender.begin()
    insert(ender, "mine")
    with pytest.raises(Refused):
        ender.fetch(enqueue(""))
    ender.rollback()
    ender.begin()
    ender.fetch(enqueue("ship"))
    ender.commit()
    assert (orders(), kinds()) == ([], ["ship"])


def test_a_commit_after_a_swallowed_error_is_reported_as_failed(ender, orders, kinds):
    ender.begin()
    insert(ender, "mine")
    with pytest.raises(Exception, match="division by zero"):
        ender.run("select 1 / 0")
    with pytest.raises(Exception, match="abort"):
        ender.commit()
    ender.rollback()
    assert orders() == []
    ender.begin()
    ender.fetch(enqueue("ship"))
    ender.commit()
    assert kinds() == ["ship"]


def test_what_a_commit_refuses_stays_in_the_words_of_the_driver(ender, orders, kinds):
    ender.begin()
    ender.run("set constraints all deferred")
    insert(ender, "twice")
    insert(ender, "twice")
    ender.fetch(enqueue("ship"))
    with pytest.raises(Exception, match="duplicate key") as error:
        ender.commit()
    assert not isinstance(error.value, Refused)
    ender.rollback()
    assert (orders(), kinds()) == ([], [])


def test_a_connection_lost_before_the_commit_is_reported(ender, sql, orders, kinds):
    ender.begin()
    insert(ender, "mine")
    ender.fetch(enqueue("ship"))
    lose(ender, sql)
    with pytest.raises(StoreUnavailable):
        ender.commit()
    ender.rollback()
    assert (orders(), kinds()) == ([], [])


def test_a_loss_that_the_caller_swallowed_is_reported_at_the_commit(ender, sql, kinds):
    ender.begin()
    ender.fetch(enqueue("ship"))
    lose(ender, sql)
    with suppress(Exception):
        ender.run("select 1")
    with pytest.raises((StoreUnavailable, PendingRollbackError)):
        ender.commit()
    ender.rollback()
    assert kinds() == []


def test_a_rollback_on_a_lost_connection_says_nothing(ender, sql, kinds):
    ender.begin()
    ender.fetch(enqueue("ship"))
    lose(ender, sql)
    ender.rollback()
    assert kinds() == []


@pytest.mark.parametrize("kind", [kind for kind in CALLERS if not issubclass(kind, AsyncCaller | Django)])
def test_a_synchronous_connection_can_be_awaited(opened, kinds, kind):
    caller = opened(kind)
    assert not caller.borrowed.is_async
    asyncio.run(whole_transaction(caller))
    assert kinds() == ["ship"]


async def whole_transaction(caller: Caller) -> None:
    await caller.borrowed.begin()
    await caller.borrowed.fetch(enqueue("undone"), "tenure")
    await caller.borrowed.rollback()
    await caller.borrowed.begin()
    await caller.borrowed.fetch(enqueue("ship"), "tenure")
    await caller.borrowed.commit()


def test_django_refuses_that_itself_and_the_way_out_is_given(opened):
    with pytest.raises(ConfigError, match="sync_to_async"):
        asyncio.run(opened(Django).borrowed.fetch(enqueue("ship"), "tenure"))


@pytest.mark.parametrize("kind", [kind for kind in CALLERS if issubclass(kind, AsyncCaller)])
def test_an_asynchronous_connection_cannot_be_used_without_await(opened, kind):
    borrowed = opened(kind).borrowed
    assert borrowed.is_async
    fetch = partial(borrowed.fetch_sync, enqueue("ship"), "tenure")
    for use in (fetch, borrowed.begin_sync, borrowed.commit_sync, borrowed.rollback_sync):
        with pytest.raises(ConfigError, match=r"await job\.enqueue"):
            use()
