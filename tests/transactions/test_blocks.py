"""What may stand inside a transaction block: other blocks, savepoints, errors that were caught, and commits of one's own."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import psycopg
import pytest

from tenure import Context, Tenure
from tests.transactions.handlers import AT_ONCE, INSERT
from tests.waiting import until
from tests.worker.serving import serving


@pytest.fixture
async def app(dsn, shop):
    app = Tenure(dsn)
    yield app
    await app.close()


async def over(handle) -> Any:
    """The job's status, once nothing more happens."""

    async def look():
        status = await handle.status()
        return status if status.state in ("completed", "failed", "dead_letter", "canceled") else None

    return await until(look)


def names(shop):
    return [name for (name,) in shop.sql("select name from public.payments order by name")]


async def run(app, job, **options):
    async with serving(app, **options):
        return await over(await job.enqueue())


async def test_a_block_inside_another_and_one_after_another_are_the_same_transaction(app, shop):
    @app.job
    async def work(ctx: Context) -> list[bool]:
        async with ctx.transaction() as outer:
            await outer.execute(INSERT, ["outer"])
            async with ctx.transaction() as inner:
                await inner.execute(INSERT, ["inner"])
            assert names(shop) == []
        async with ctx.transaction() as later:
            await later.execute(INSERT, ["later"])
        assert names(shop) == []
        return [inner is outer, later is outer]

    status = await run(app, work)
    assert (status.state, status.output) == ("completed", [True, True])
    assert names(shop) == ["inner", "later", "outer"]


async def test_blocks_opened_at_the_same_time_are_the_same_transaction(app, shop):
    @app.job
    async def work(ctx: Context) -> None:
        async def part(name):
            async with ctx.transaction() as tx:
                await tx.execute(INSERT, [name])

        await asyncio.gather(part("one"), part("two"), part("three"))

    status = await run(app, work)
    assert status.state == "completed"
    assert names(shop) == ["one", "three", "two"]


async def test_an_error_caught_outside_of_an_inner_block_does_not_undo_the_outer_one(app, shop):
    @app.job
    async def work(ctx: Context) -> None:
        async with ctx.transaction() as tx:
            await tx.execute(INSERT, ["outer"])
            with suppress(ValueError):
                async with ctx.transaction():
                    raise ValueError("caught")
            await tx.execute(INSERT, ["after"])

    assert (await run(app, work)).state == "completed"
    assert names(shop) == ["after", "outer"]


@pytest.mark.parametrize("atomic", [True, False])
async def test_the_database_of_the_context_is_the_transaction_while_there_is_one(app, shop, atomic):
    @app.job(atomic=atomic, max_attempts=1)
    async def work(ctx: Context) -> None:
        async with ctx.db() as conn:
            await conn.execute(INSERT, ["by db"])
        raise ValueError("undo it")

    assert (await run(app, work)).state == "dead_letter"
    assert names(shop) == ([] if atomic else ["by db"])


async def test_the_database_of_the_context_is_the_transaction_inside_a_block(app, shop):
    @app.job(max_attempts=1)
    def work(ctx: Context) -> None:
        with ctx.transaction() as tx, ctx.db() as conn:
            assert conn is tx
            conn.execute(INSERT, ["by db"])
        raise ValueError("undo it")

    assert (await run(app, work)).state == "dead_letter"
    assert names(shop) == []


async def test_a_savepoint_of_the_handlers_own_undoes_only_itself(app, shop):
    @app.job
    async def in_loop(ctx: Context) -> None:
        async with ctx.transaction() as tx:
            await tx.execute(INSERT, ["kept"])
            async with tx.transaction():
                await tx.execute(INSERT, ["released"])
            with suppress(psycopg.errors.DivisionByZero):
                async with tx.transaction():
                    await tx.execute(INSERT, ["undone"])
                    await tx.execute("select 1 / 0")

    @app.job
    def in_thread(ctx: Context) -> None:
        with ctx.transaction() as tx:
            tx.execute(INSERT, ["kept too"])
            with suppress(ValueError), tx.transaction():
                tx.execute(INSERT, ["undone"])
                raise ValueError

    assert (await run(app, in_loop)).state == "completed"
    assert (await run(app, in_thread)).state == "completed"
    assert names(shop) == ["kept", "kept too", "released"]


async def test_a_constraint_that_fails_at_the_commit_is_an_error_that_tells(app, shop):
    shop.sql("insert into public.payments values ('twice')")

    @app.job(retry=AT_ONCE)
    async def in_loop(ctx: Context) -> str:
        async with ctx.transaction() as tx:
            await tx.execute(INSERT, ["twice"])
        return "done"

    @app.job(retry=AT_ONCE)
    def in_thread(ctx: Context) -> str:
        with ctx.transaction() as tx:
            tx.execute(INSERT, ["twice"])
        return "done"

    for job in (in_loop, in_thread):
        status = await run(app, job)
        assert (status.state, status.attempt, status.output) == ("dead_letter", 3, None)
        assert "UniqueViolation: duplicate key value" in status.error
    assert names(shop) == ["twice"]


async def test_an_error_of_postgresql_that_the_handler_swallowed_is_not_taken_for_a_commit(app, shop):
    @app.job(max_attempts=1)
    async def in_loop(ctx: Context) -> str:
        async with ctx.transaction() as tx:
            await tx.execute(INSERT, ["undone"])
            with suppress(psycopg.Error):
                await tx.execute("select 1 / 0")
        return "done"

    @app.job(max_attempts=1)
    def in_thread(ctx: Context) -> str:
        with ctx.transaction() as tx:
            tx.execute(INSERT, ["undone"])
            with suppress(psycopg.Error):
                tx.execute("select 1 / 0")
        return "done"

    for job in (in_loop, in_thread):
        status = await run(app, job)
        assert status.state == "dead_letter"
        assert "aborted" in status.error
    assert names(shop) == []


async def test_a_handler_cannot_commit_by_itself(app, shop):
    @app.job(max_attempts=1)
    async def in_loop(ctx: Context) -> None:
        async with ctx.transaction() as tx:
            await tx.execute(INSERT, ["early"])
            await tx.commit()

    @app.job(max_attempts=1)
    def in_thread(ctx: Context) -> None:
        with ctx.transaction() as tx:
            tx.execute(INSERT, ["early"])
            tx.commit()

    for job in (in_loop, in_thread):
        assert (await run(app, job)).state == "dead_letter"
    assert names(shop) == []


async def test_connections_are_released_after_every_outcome_of_the_run(app, shop):
    @app.job(retry=AT_ONCE, atomic=True)
    async def in_loop(ctx: Context, n: int) -> int:
        async with ctx.db() as tx:
            await tx.execute(INSERT, [f"loop {n}"])
            if n % 3 == 1:
                raise ValueError
            if n % 3 == 2:
                await tx.execute("select 1 / 0")
        return n

    @app.job(retry=AT_ONCE, atomic=True)
    def in_thread(ctx: Context, n: int) -> int:
        with ctx.db() as tx:
            tx.execute(INSERT, [f"thread {n}"])
            if n % 3 == 1:
                raise ValueError
            if n % 3 == 2:
                tx.execute("select 1 / 0")
        return n

    async with serving(app, concurrency=2):
        handles = await app.enqueue_many([job.call(n) for n in range(12) for job in (in_loop, in_thread)])
        seen = [(await over(handle)).state for handle in handles]
    assert sorted(seen) == ["completed"] * 8 + ["dead_letter"] * 16
    assert names(shop) == sorted(f"{where} {n}" for where in ("loop", "thread") for n in (0, 3, 6, 9))


async def test_what_it_said_is_written_even_though_its_transaction_is_undone(app, shop):
    @app.job(max_attempts=1, atomic=True)
    async def work(ctx: Context) -> None:
        ctx.progress(50, "half")
        ctx.log.info("first write done")
        raise ValueError

    async with serving(app):
        handle = await work.enqueue()
        await over(handle)
        assert (await handle.progress()).message == "half"
    assert shop.sql("select lines #>> '{0,message}' from tenure.logs") == [("first write done",)]
