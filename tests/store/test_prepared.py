"""Statements on a link: prepared once for each combination of types, and not at all behind a pooler."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

from tenure import StoreUnavailable
from tenure.store import prepared
from tenure.store.faults import Refused
from tenure.store.link import Link
from tenure.store.prepared import numbered
from tenure.store.query import TEXT, Query
from tenure.store.sync_link import SyncLink
from tenure.store.target import DatabaseTarget
from tests.waiting import until

STATEMENTS = {
    "test/prepared": "select count(*)::text as n from pg_prepared_statements where name like 'tenure%%'",
    "test/names": "select name as found from pg_prepared_statements where name like 'tenure%%' order by prepare_time limit 1",
    "test/type": "select pg_typeof(%(value)s)::text || ' ' || %(value)s::text as found where 'a%%' like '%%'",
    "test/write": "insert into tenure.queues (name) values (%(value)s) returning name as found",
    "test/refused": "select (1 / %(value)s)::text as found",
}
SOON = 1e9
"""A deadline that does not pass."""


@pytest.fixture(autouse=True)
def statements(monkeypatch):
    for module in ("prepared", "link", "sync_link"):
        monkeypatch.setattr(f"tenure.store.{module}.statement", lambda name, _schema: STATEMENTS[name])
    yield
    numbered.cache_clear()


def typed(value):
    return Query("test/type", TEXT, {"value": value, "unused": 1})


COUNT = Query("test/prepared", TEXT)
NAMES = Query("test/names", TEXT)


def test_a_repeated_parameter_has_one_number_and_a_percent_sign_is_one():
    text, parameters, _ = numbered("test/type", "tenure")
    assert text == b"select pg_typeof($1)::text || ' ' || $1::text as found where 'a%' like '%'"
    assert parameters == ("value",)


async def test_a_statement_is_prepared_once_for_each_type_of_its_values(dsn):
    async with Link(DatabaseTarget.at(dsn), "test") as link:
        for value, found in ((1, "smallint 1"), (2, "smallint 2"), (70000, "integer 70000"), (True, "boolean true")):
            assert await link.fetch(typed(value)) == [found]
        assert await link.fetch(COUNT) == ["4"]


async def test_the_oldest_of_too_many_is_forgotten_and_prepared_again_when_it_is_needed(dsn, monkeypatch):
    monkeypatch.setattr("tenure.store.prepared.MOST", 3)
    async with Link(DatabaseTarget.at(dsn), "test") as link:
        for _ in range(2):
            for value, found in ((1, "smallint 1"), (70000, "integer 70000"), (True, "boolean true")):
                assert await link.fetch(typed(value)) == [found]
            assert await link.fetch(COUNT) == ["3"]


async def test_a_name_stands_for_the_same_statement_on_all_connections(dsn):
    names = {}
    for value in (1, 2, 70000):
        async with Link(DatabaseTarget.at(dsn), "test") as link:
            await link.fetch(typed(value))
            [names[value]] = await link.fetch(NAMES)
    assert names[1] == names[2] != names[70000]


async def test_a_statement_whose_preparation_was_done_without_an_answer_is_prepared_again(dsn):
    async with Link(DatabaseTarget.at(dsn), "test") as link:
        assert await link.fetch(typed(1)) == ["smallint 1"]
        link._prepared._prepared.clear()  # as after a timeout that came between the two
        assert await link.fetch(typed(1)) == ["smallint 1"]


async def test_behind_a_pooler_nothing_is_prepared(dsn):
    target = DatabaseTarget.at(dsn, pooled=True)
    async with Link(target, "test") as link:
        assert await link.fetch(typed(1)) == ["smallint 1"]
        assert await link.fetch(COUNT) == ["0"]
    link = SyncLink(target, "test")
    assert link.fetch(typed(1), deadline=SOON) == ["smallint 1"]
    assert link.fetch(COUNT, deadline=SOON) == ["0"]
    link.close()


async def test_after_a_refused_statement_the_same_one_runs_on_the_same_connection(dsn):
    async with Link(DatabaseTarget.at(dsn), "test") as link:
        for _ in range(2):
            with pytest.raises(Exception, match="division by zero") as raised:
                await link.fetch(Query("test/refused", TEXT, {"value": 0}))
            assert isinstance(raised.value.__cause__, psycopg.errors.DivisionByZero)
            assert await link.fetch(Query("test/refused", TEXT, {"value": 1})) == ["1"]
        assert link.sessions == 1


def test_code_without_an_event_loop_prepares_statements_too(dsn):
    link = SyncLink(DatabaseTarget.at(dsn), "test")
    assert [link.fetch(typed(value), deadline=SOON) for value in (1, 2)] == [["smallint 1"], ["smallint 2"]]
    assert link.fetch(COUNT, deadline=SOON) == ["2"]
    link.close()


async def test_a_statement_in_use_is_not_the_one_that_is_forgotten(dsn, monkeypatch):
    monkeypatch.setattr("tenure.store.prepared.MOST", 4)
    monkeypatch.setattr("tenure.store.prepared.CROWDED", 2)
    async with Link(DatabaseTarget.at(dsn), "test") as link:
        [name] = await link.fetch(NAMES)
        for value in (1, 1.5, True, 1 << 20, 1 << 40):
            await link.fetch(typed(value))
            assert await link.fetch(NAMES) == [name]


async def test_a_refused_pair_of_statements_leaves_the_prepared_ones_usable(dsn):
    """The driver prepares the pair, and would deallocate all statements of the session when it sees a rollback."""
    refused = Query("test/refused", TEXT, {"value": 0})
    async with Link(DatabaseTarget.at(dsn), "test") as link:
        before = await link.fetch(typed(1))
        await link.fetch_both(typed(1), COUNT)
        with pytest.raises(Refused):
            await link.fetch_both(COUNT, refused)
        assert (await link.fetch(typed(1)), link.sessions) == (before, 1)


async def test_a_transaction_that_is_rolled_back_leaves_the_prepared_statements_usable(dsn):
    async with Link(DatabaseTarget.at(dsn), "test") as link:
        before = await link.fetch(typed(1))
        with pytest.raises(Refused):
            async with link.transaction() as run:
                await run(Query("test/refused", TEXT, {"value": 0}))
        assert (await link.fetch(typed(1)), link.sessions) == (before, 1)


async def test_an_answer_of_several_results_costs_the_connection(dsn, monkeypatch):
    """What is left to be read on it is not known, and the statement may have been committed."""

    def two(results):
        return checked([*results, *results])

    checked = prepared._checked
    async with Link(DatabaseTarget.at(dsn), "test") as link:
        await link.fetch(typed(1))
        with monkeypatch.context() as patched:
            patched.setattr(prepared, "_checked", two)
            with pytest.raises(StoreUnavailable):
                await link.fetch(typed(1))
        assert (await link.fetch(COUNT), link.sessions) == (["1"], 2)


async def test_an_answer_is_not_kept_once_its_rows_are_read(dsn):
    """That of a claim may have many megabytes, and the next claims find no job for hours."""
    async with Link(DatabaseTarget.at(dsn), "test") as link:
        for value in (1, 2):
            assert await link.fetch(typed(value)) == [f"smallint {value}"]
            assert link._prepared._transformer.pgresult is None


async def test_a_statement_is_not_sent_once_its_caller_was_canceled(dsn, monkeypatch):
    """When the request to cancel comes too late for the preparation, the driver lets the conversation continue."""
    with psycopg.connect(dsn) as other:

        async def come_too_late(*_, **__):
            other.rollback()

        monkeypatch.setattr(psycopg.AsyncConnection, "_try_cancel", come_too_late)
        other.execute("lock table tenure.queues in access exclusive mode")
        preparing = "select count(*) from pg_locks where not granted and relation = 'tenure.queues'::regclass"
        async with Link(DatabaseTarget.at(dsn), "test") as link:
            writing = asyncio.create_task(link.fetch(Query("test/write", TEXT, {"value": "late"})))
            await until(lambda: other.execute(preparing).fetchone(), is_=(1,))
            writing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await writing
        assert other.execute("select name from tenure.queues").fetchall() == []
