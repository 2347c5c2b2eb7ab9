"""Handlers that use the ORM, in threads, processes and coroutines of a real worker."""

from __future__ import annotations

import pytest

from tests.waiting import until

pytestmark = pytest.mark.slow

OVER = (
    "select kind, state, attempt from tenure.all_jobs where state in ('completed', 'failed', 'dead_letter') order by enqueued_at"
)
KEPT = {"CONN_MAX_AGE": None}


def enqueue(shop, *calls: str) -> None:
    lines = "\n".join(call if call.startswith("app.") else f"jobs.{call}" for call in calls)
    shop.run(f"from orders import jobs\nfrom orders.jobs import app\n{lines}")


def labels(sql) -> list[str]:
    return [label for (label,) in sql("select label from orders_order order by id")]


async def over(sql, count: int) -> list[tuple[str, str, int]]:
    return await until(lambda: found if len(found := sql(OVER)) == count else None, within=30)


async def test_a_job_runs_with_the_orm_and_enqueues_in_its_transaction(shop, sql):
    sql("insert into orders_order (label, state) values ('one', 'new')")
    enqueue(shop, "ship.enqueue_sync(1)")
    with shop.worker():
        assert await over(sql, 2) == [("ship", "completed", 1), ("mails.send", "completed", 1)]
    assert sql("select parent_id is not null from tenure.history where kind = 'mails.send'") == [(True,)]


async def test_rows_and_completion_are_one_transaction(shop, sql):
    enqueue(shop, "ship_once.enqueue_sync('first')", "ship_once_using.enqueue_sync('second')")
    with shop.worker("--concurrency", "1"):
        assert await over(sql, 2) == [("ship_once", "completed", 2), ("ship_once_using", "completed", 1)]
    assert sorted(labels(sql)) == ["first", "second"]
    same = """
        select count(*) from orders_order o join tenure.history h on h.xmin = o.xmin"""
    assert sql(same) == [(2,)]


@pytest.mark.parametrize("forgetful", ["leave_block_open", "leave_autocommit_off"])
async def test_what_a_job_leaves_open_is_rolled_back_and_does_not_swallow_the_next_one(shop, sql, forgetful):
    kept = shop.varied(database=KEPT)
    enqueue(kept, f"{forgetful}.enqueue_sync()", "create.enqueue_sync('written')")
    with kept.worker("--concurrency", "1"):
        assert [state for _, state, _ in await over(sql, 2)] == ["completed", "completed"]
    assert labels(sql) == ["written"]


@pytest.mark.parametrize(("seconds", "connections"), [(3600, 1), (0.001, 3)])
async def test_a_connection_is_kept_until_its_greatest_age(shop, sql, seconds, connections):
    varied = shop.varied(database={"CONN_MAX_AGE": seconds})
    enqueue(varied, "app.enqueue_many_sync([jobs.write.call(number) for number in range(3)])")
    with varied.worker("--concurrency", "1"):
        await over(sql, 3)
    assert sql("select count(distinct output) from tenure.history") == [(connections,)]


async def test_coroutines_use_the_asynchronous_orm(shop, sql):
    enqueue(shop, *(f"acreate.enqueue_sync('{number}')" for number in range(4)))
    with shop.worker():
        assert {state for _, state, _ in await over(sql, 4)} == {"completed"}
        assert sorted(labels(sql)) == ["0", "1", "2", "3"]
        orm = "select count(*) from pg_stat_activity where datname = current_database() and application_name = 'orm'"
        await until(lambda: sql(orm) == [(0,)])


async def test_a_pool_smaller_than_the_concurrency_serves_all_jobs(shop, sql):
    pooled = shop.varied(database={"OPTIONS": {"pool": {"min_size": 1, "max_size": 2, "timeout": 20}}})
    enqueue(pooled, *(f"write.enqueue_sync({number})" for number in range(20)))
    with pooled.worker("--concurrency", "6"):
        assert {(state, attempt) for _, state, attempt in await over(sql, 20)} == {("completed", 1)}
