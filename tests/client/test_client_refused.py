"""Jobs whose rows PostgreSQL refuses to change: all the others are done, and the caller gets to know which are not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from uuid import UUID

import psycopg
import pytest

from tenure.client import lock_retry as patience
from tenure.model.errors import JobsRefused
from tenure.store.faults import Refused
from tests.store.database import Database
from tests.store.forged_jobs import change_state

COUNT = 10


@pytest.fixture
def refuse(database: Database) -> Iterator[Callable[..., None]]:
    """A trigger of the user's on tenure.jobs."""
    database.sql("create schema audit")

    def make(when: str, *ids: str, level: str = "row", code: str = "AU001") -> None:
        database.sql(
            "create function audit.refuse() returns trigger language plpgsql as"
            f" $$ begin raise exception 'the auditor says no' using errcode = '{code}'; end $$"
        )
        listed = ", ".join(f"'{job_id}'" for job_id in ids)
        condition = f"when (old.id in ({listed}))" if level == "row" else ""
        database.sql(
            f"create trigger audit before {when} on tenure.jobs for each {level} {condition} execute function audit.refuse()"
        )

    yield make
    database.sql("drop schema audit cascade")


def make_dead_letters(database: Database) -> list[str]:
    ids = database.enqueue(*({} for _ in range(COUNT)))
    change_state(database.sql, "dead_letter")
    return ids


def states(database: Database) -> dict[str, int]:
    return dict(database.sql("select state, count(*) from tenure.all_jobs group by 1"))


@pytest.mark.parametrize("code", ["AU001", "08001", "55P03"])
async def test_cancel_all_cancels_all_but_the_refused_ones_and_names_them(client, database, refuse, code):
    ids = database.enqueue(*({} for _ in range(COUNT)))
    refuse("delete", ids[4], ids[7], code=code)
    with pytest.raises(JobsRefused, match="the auditor says no; 8 other jobs were changed") as caught:
        await client.cancel_all(kind="work")
    assert sorted(caught.value.ids) == sorted([UUID(ids[4]), UUID(ids[7])])
    assert caught.value.done == COUNT - 2
    assert states(database) == {"canceled": COUNT - 2, "pending": 2}


async def test_refused_jobs_in_several_batches_are_named_together(client, database, refuse, monkeypatch):
    monkeypatch.setattr(patience, "BATCH", 3)
    ids = database.enqueue(*({} for _ in range(COUNT)))
    refuse("delete", ids[0], ids[9])
    with pytest.raises(JobsRefused) as caught:
        await client.cancel(*ids)
    assert (set(caught.value.ids), caught.value.done) == ({UUID(ids[0]), UUID(ids[9])}, COUNT - 2)


async def test_replay_all_replays_all_but_the_refused_one_and_names_it(client, database, refuse):
    ids = make_dead_letters(database)
    refuse("update", ids[4])
    with pytest.raises(JobsRefused) as caught:
        await client.replay_all(kind="work")
    assert (caught.value.ids, caught.value.done) == ([UUID(ids[4])], COUNT - 1)
    assert states(database) == {"pending": COUNT - 1, "dead_letter": 1}


async def test_delete_removes_all_but_the_refused_one_and_names_it(client, database, refuse):
    ids = database.enqueue(*({} for _ in range(COUNT)))
    refuse("delete", ids[4])
    with pytest.raises(JobsRefused) as caught:
        await client.delete(*ids)
    assert (caught.value.ids, caught.value.done) == ([UUID(ids[4])], COUNT - 1)
    assert database.sql("select id::text from tenure.jobs") == [(ids[4],)]


async def test_a_refusal_that_does_not_depend_on_a_job_is_raised_at_once(client, database, refuse):
    ids = database.enqueue(*({} for _ in range(COUNT)))
    refuse("delete", level="statement")
    with pytest.raises(Refused, match="the auditor says no"):
        await client.cancel(*ids)


async def test_a_call_stops_after_very_many_refusals_and_says_so(client, database, refuse, monkeypatch):
    monkeypatch.setattr(patience, "MOST_REFUSED", 3)
    ids = database.enqueue(*({} for _ in range(COUNT)))
    refuse("delete", *ids)
    with pytest.raises(JobsRefused, match="the call stopped there") as caught:
        await client.cancel_all(kind="work")
    assert (len(caught.value.ids), caught.value.done) == (3, 0)


async def test_in_a_transaction_of_the_callers_it_is_all_or_nothing(client, database, refuse, dsn):
    ids = database.enqueue(*({} for _ in range(COUNT)))
    refuse("delete", ids[4])
    async with await psycopg.AsyncConnection.connect(dsn) as conn:
        with pytest.raises(psycopg.Error, match="the auditor says no"):
            async with conn.transaction():
                await client.cancel(*ids, conn=conn)
    assert states(database) == {"pending": COUNT}
