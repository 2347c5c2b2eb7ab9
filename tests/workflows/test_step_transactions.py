"""Steps that are exactly once in the user's own database."""

from __future__ import annotations

import threading
from typing import Any

import psycopg
import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.orm import Session, sessionmaker

from tenure import JobFailed, Retry, StepFailed, WorkflowContext
from tenure.worker.run.steps import StepWriter
from tests.waiting import until
from tests.worker.serving import serving
from tests.workflows.test_sleep import come_true, suspended

AT_ONCE = Retry(max_attempts=3, initial="10ms", max_backoff="10ms", jitter=False)


@pytest.fixture
def bookings(sql):
    sql("create table if not exists public.bookings (what text)")
    sql("truncate public.bookings")
    return lambda: [what for (what,) in sql("select what from public.bookings")]


async def book(conn, what: str) -> str:
    await conn.execute("insert into public.bookings values (%s)", [what])
    return f"booked {what}"


def book_in_session(session: Session, what: str) -> str:
    session.execute(text("insert into public.bookings values (:what)"), {"what": what})
    return f"booked {what}"


async def test_the_writes_of_the_step_and_its_result_commit_together(app, sql, bookings):
    @app.workflow(retry=AT_ONCE)
    async def trip(ctx: WorkflowContext) -> str:
        booked = await ctx.transaction("book", book, "flight")
        if ctx.attempt < 3:
            raise ValueError("not yet")
        return booked

    async with serving(app):
        assert await (await trip.enqueue()).result("20s") == "booked flight"
    assert bookings() == ["flight"]
    assert sql("select name, what, state, output from tenure.steps") == [("book", "transaction", "done", "booked flight")]


async def test_a_plain_function_gets_a_session_of_the_users_own_in_a_thread(app, dsn, bookings):
    engine = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(dsn))
    sessions = sessionmaker(engine)

    @app.workflow(retry=AT_ONCE)
    async def trip(ctx: WorkflowContext) -> str:
        booked = await ctx.transaction("book", book_in_session, "hotel", session=sessions)
        if ctx.attempt == 1:
            raise ValueError("not yet")
        return booked

    async with serving(app):
        assert await (await trip.enqueue()).result("20s") == "booked hotel"
    assert bookings() == ["hotel"]
    engine.dispose()


async def test_a_step_that_fails_leaves_nothing_and_is_tried_again(app, bookings):
    tries = []

    async def fails_first(conn, what: str) -> int:
        await conn.execute("insert into public.bookings values (%s)", [what])
        tries.append(what)
        if len(tries) < 3:
            raise ConnectionError("no answer")
        return len(tries)

    @app.workflow
    async def trip(ctx: WorkflowContext) -> int:
        return await ctx.transaction("book", fails_first, "flight", retry=AT_ONCE)

    async with serving(app):
        assert await (await trip.enqueue()).result("20s") == 3
    assert bookings() == ["flight"]


async def test_a_step_that_commits_by_itself_is_refused_and_not_repeated(app, dsn, sql, bookings):
    engine = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(dsn))

    def commits(session: Session) -> None:
        book_in_session(session, "flight")
        session.commit()

    @app.workflow(retry=AT_ONCE)
    async def trip(ctx: WorkflowContext) -> None:
        await ctx.transaction("book", commits, session=sessionmaker(engine), retry=AT_ONCE)

    async with serving(app):
        with pytest.raises(JobFailed, match="the handler committed in"):
            await (await trip.enqueue()).result("20s")
    assert bookings() == ["flight"]
    assert sql("select count(*) from tenure.steps") == [(0,)]
    engine.dispose()


async def test_a_run_that_has_lost_its_job_writes_nothing(app, sql, bookings):
    @app.workflow(max_attempts=1)
    async def trip(ctx: WorkflowContext) -> None:
        sql("update tenure.jobs set claim_id = gen_random_uuid(), fence = fence + 1")
        await ctx.transaction("book", book, "flight")

    async with serving(app):
        handle = await trip.enqueue()
        async for update in handle.watch():
            if update.status.fence > 1:
                break
    assert bookings() == []
    assert sql("select count(*) from tenure.steps") == [(0,)]


async def test_what_the_workflow_catches_is_recorded_before_the_transaction(app, sql, bookings):
    async def broken() -> None:
        raise ConnectionError("no answer")

    @app.workflow
    async def trip(ctx: WorkflowContext) -> str:
        try:
            await ctx.step("broken", broken)
        except StepFailed:
            return await ctx.transaction("book", book, "flight")
        return ""

    async with serving(app):
        assert await (await trip.enqueue()).result("20s") == "booked flight"
    assert sql("select name, state from tenure.steps order by number") == [("broken", "failed"), ("book", "done")]


async def test_a_step_that_is_stored_already_writes_nothing_again(app, sql, bookings):
    """Its COMMIT was not answered, and happened nevertheless while the step was tried again."""

    async def book_late(conn, what: str) -> str:
        sql(
            "insert into tenure.steps (job_id, name, number, what, state, output, fence)"
            " select id, 'book', 1, 'transaction', 'done', '\"booked before\"', 1 from tenure.jobs"
        )
        return await book(conn, what)

    @app.workflow
    async def trip(ctx: WorkflowContext) -> str:
        return await ctx.transaction("book", book_late, "flight")

    async with serving(app):
        assert await (await trip.enqueue()).result("20s") == "booked before"
    assert bookings() == []


async def test_a_step_is_tried_again_after_a_long_pause(app, sql, bookings):
    tries: list[str] = []

    async def fails_first(conn, what: str) -> int:
        await conn.execute("insert into public.bookings values (%s)", [what])
        tries.append(what)
        if len(tries) < 3:
            raise ConnectionError("no answer")
        return len(tries)

    @app.workflow(max_attempts=1)
    async def trip(ctx: WorkflowContext) -> int:
        later = Retry(max_attempts=3, initial="1h", max_backoff="1h", jitter=False)
        return await ctx.transaction("book", fails_first, "flight", retry=later)

    async with serving(app):
        handle = await trip.enqueue()
        for tried in (1, 2):
            await until(lambda: sql("select attempts, state from tenure.steps"), is_=[(tried, "retry")])
            await suspended(sql)
            come_true(sql)
        assert await handle.result("20s") == 3
    assert bookings() == ["flight"]
    assert sql("select state, output, error, attempts from tenure.steps") == [("done", 3, None, 3)]


@pytest.mark.parametrize("late", ["before the failure is stored", "after it"])
async def test_a_thread_that_continues_after_its_time_limit_commits_only_what_the_workflow_learns_of(
    app, dsn, sql, bookings, late
):
    engine = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(dsn))
    begun, go_on = threading.Event(), threading.Event()
    saw: list[str] = []

    def slow(session: Session) -> str:
        booked = book_in_session(session, "hotel")
        begun.set()
        go_on.wait(20)
        return booked

    async def note(text: str) -> str:
        return text

    @app.workflow(retry=AT_ONCE)
    async def trip(ctx: WorkflowContext) -> str:
        try:
            booked = await ctx.transaction("book", slow, session=sessionmaker(engine), timeout=0.3)
        except StepFailed:
            booked = "not booked"
        saw.append(booked)
        await ctx.step("note", note, booked)
        go_on.set()
        if ctx.attempt == 1:
            if late == "after it":  # the thread ends while the run still holds its job
                await until(engine.pool.checkedout, is_=0)  # type: ignore[attr-defined]
            raise ValueError("once more")
        return booked

    if late == "before the failure is stored":
        record = StepWriter.record

        async def committed_first(writer: StepWriter, run: Any, steps: str, last: str) -> None:
            if '"failed"' in steps:
                go_on.set()
                await until(bookings, is_=["hotel"])
            await record(writer, run, steps, last)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(StepWriter, "record", committed_first)
            async with serving(app):
                result = await (await trip.enqueue()).result("20s")
    else:
        async with serving(app):
            result = await (await trip.enqueue()).result("20s")
    assert len(set(saw)) == 1
    assert (result, bookings()) in (("booked hotel", ["hotel"]), ("not booked", []))
    engine.dispose()
