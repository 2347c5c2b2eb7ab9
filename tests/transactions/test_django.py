"""`ctx.transaction(connection)` with Django's connection: the ORM's writes commit with the job, in the handler's own thread."""

from __future__ import annotations

import logging

import pytest
from django.db import IntegrityError, close_old_connections, connection, connections, transaction

from tenure import Context, RunFailedAfterCompletion, Tenure
from tests.transactions.django_orm import payment_model, set_up
from tests.transactions.handlers import AT_ONCE
from tests.transactions.test_blocks import names, over, run
from tests.worker.serving import serving


@pytest.fixture
async def app(dsn, shop):
    set_up(dsn)
    app = Tenure(dsn)

    @app.around_thread
    def fresh_connections(ctx):
        close_old_connections()
        try:
            yield
        finally:
            connections.close_all()

    yield app
    await app.close()


@pytest.fixture
def payments(app):
    return payment_model().objects


async def test_rows_result_and_completion_are_one_transaction(app, shop, payments):
    seen = []

    @app.job(max_attempts=1)
    def pay(ctx: Context, name: str) -> str:
        with ctx.transaction(connection):
            payments.create(name=name)
        payments.create(name=f"{name} after the block")
        seen.append(names(shop))
        return f"paid {name}"

    async with serving(app):
        status = await over(await pay.enqueue("ada"))
    assert (status.state, status.output) == ("completed", "paid ada")
    assert (seen, names(shop)) == ([[]], ["ada", "ada after the block"])
    same = "select count(distinct xmin::text) from (select xmin from public.payments union select xmin from tenure.history) x"
    assert shop.sql(same) == [(1,)]


@pytest.mark.parametrize("where", ["inside", "after"])
async def test_what_is_raised_in_the_block_or_after_it_undoes_all_of_it(app, shop, payments, where):
    @app.job(retry=AT_ONCE)
    def pay(ctx: Context) -> str:
        with ctx.transaction(connection):
            payments.create(name=f"attempt {ctx.attempt}")
            if where == "inside" and ctx.attempt < 3:
                raise ValueError("no money")
        if ctx.attempt < 3:
            raise ValueError("no money")
        return "paid"

    status = await run(app, pay)
    assert (status.state, status.attempt, status.output) == ("completed", 3, "paid")
    assert names(shop) == ["attempt 3"]


async def test_an_atomic_block_inside_undoes_only_itself(app, shop, payments):
    @app.job(max_attempts=1)
    def pay(ctx: Context) -> None:
        with ctx.transaction(connection):
            payments.create(name="kept")
            try:
                with transaction.atomic():
                    payments.create(name="undone")
                    raise IntegrityError
            except IntegrityError:
                pass

    assert (await run(app, pay)).state == "completed"
    assert names(shop) == ["kept"]


async def test_an_atomic_block_outside_is_refused_because_it_would_commit_too_early(app, shop, payments):
    @app.job(max_attempts=1)
    def pay(ctx: Context) -> None:
        with transaction.atomic(), ctx.transaction(connection):
            payments.create(name="never")

    status = await run(app, pay)
    assert "already inside of transaction.atomic(), which would commit before the job is completed" in status.error
    assert names(shop) == []


async def test_a_connection_with_autocommit_off_is_refused_because_nothing_would_commit_it(app, shop, payments):
    @app.job(max_attempts=1)
    def pay(ctx: Context) -> None:
        connection.set_autocommit(False)
        with ctx.transaction(connection):
            payments.create(name="never")

    assert "ConfigError: autocommit is off on this Django connection" in (await run(app, pay)).error
    assert names(shop) == []


async def test_a_commit_by_raw_sql_is_refused(app, shop, payments):
    @app.job(retry=AT_ONCE)
    def pay(ctx: Context) -> None:
        with ctx.transaction(connection):
            payments.create(name="kept")
            with connection.cursor() as cursor:
                cursor.execute("commit")

    status = await run(app, pay)
    assert (status.state, status.attempt) == ("dead_letter", 1)
    assert "TransactionError: the handler committed in ctx.transaction() by itself" in status.error
    assert names(shop) == ["kept"]


async def test_an_inner_block_that_was_never_left_is_refused(app, shop, payments):
    @app.job(max_attempts=1)
    def pay(ctx: Context) -> None:
        with ctx.transaction(connection):
            payments.create(name="undone")
            transaction.atomic().__enter__()

    assert "TransactionError: an inner transaction.atomic() was entered and never left" in (await run(app, pay)).error
    assert names(shop) == []


async def test_a_coroutine_fails_with_the_advice_to_make_it_a_plain_function(app, shop):
    @app.job(max_attempts=1)
    async def pay(ctx: Context) -> None:
        async with ctx.transaction(connection):
            pass

    assert "make the handler a plain function" in (await run(app, pay)).error


async def test_callbacks_after_the_commit_run_in_the_handlers_thread_once_all_is_durable(app, shop, payments):
    seen = []

    @app.job(max_attempts=1)
    def pay(ctx: Context) -> None:
        with ctx.transaction(connection):
            payments.create(name="ada")
            transaction.on_commit(lambda: seen.append(shop.seen_by("pay")))

    shop.seen_by = lambda kind: (names(shop), shop.sql("select state from tenure.all_jobs where kind = %s", kind))
    assert (await run(app, pay)).state == "completed"
    assert seen == [(["ada"], [("completed",)])]


async def test_a_callback_that_fails_is_reported_and_does_not_undo_what_is_committed(app, shop, payments, caplog):
    told = []
    app.on(RunFailedAfterCompletion)(told.append)

    @app.job(retry=AT_ONCE)
    def pay(ctx: Context) -> str:
        with ctx.transaction(connection):
            payments.create(name="ada")
            transaction.on_commit(lambda: 1 / 0)
        return "paid"

    async with serving(app):
        handle = await pay.enqueue()
        status = await over(handle)
        assert await handle.result("30s") == "paid"
    assert (status.state, status.attempt, names(shop)) == ("completed", 1, ["ada"])
    [event] = told
    assert (event.job_id, event.what, "ZeroDivisionError" in event.error) == (handle.id, "failed", True)
    [record] = [record for record in caplog.records if "was completed by its own transaction" in record.message]
    assert (record.levelno, record.exc_info[0]) == (logging.ERROR, ZeroDivisionError)


async def test_a_connection_that_breaks_costs_an_attempt_and_nothing_else(app, shop, payments):
    @app.job(retry=AT_ONCE)
    def pay(ctx: Context) -> str:
        with ctx.transaction(connection):
            payments.create(name=f"attempt {ctx.attempt}")
            if ctx.attempt == 1:
                with connection.cursor() as cursor:
                    cursor.execute("select pg_backend_pid()")
                    shop.sql("select pg_terminate_backend(%s, 5000)", cursor.fetchone()[0])
        return "paid"

    status = await run(app, pay)
    assert (status.state, status.attempt, status.output) == ("completed", 2, "paid")
    assert names(shop) == ["attempt 2"]
