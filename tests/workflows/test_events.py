"""Workflows that wait for events and signals."""

from __future__ import annotations

from decimal import Decimal

import psycopg
import pytest
from pydantic import BaseModel

from tenure import ConfigError, Fail, JobNotFound, NotPossible, Retry, WaitTimeout, WorkflowContext
from tests.waiting import until
from tests.worker.serving import serving
from tests.workflows.test_sleep import come_true, suspended

AT_ONCE = Retry(max_attempts=3, initial="10ms", max_backoff="10ms", jitter=False)


class Payment(BaseModel):
    total: Decimal


async def note(text: str) -> str:
    return text


async def test_a_workflow_waits_for_an_event_and_gets_its_payload(app, sql):
    @app.workflow
    async def order(ctx: WorkflowContext, number: str) -> str:
        payment = await ctx.wait_for("paid", key=number, type=Payment)
        return f"{payment.total} for {number}"

    async with serving(app):
        first, second = await order.enqueue("o-1"), await order.enqueue("o-2")
        await until(lambda: sql("select count(*) from tenure.waits where checked"), is_=[(2,)])
        assert sql("select state, position, claim_id from tenure.jobs") == [("waiting", -2, None)] * 2
        await app.emit("paid", Payment(total=Decimal("9.99")), key="o-2")
        assert await second.result("20s") == "9.99 for o-2"
        assert (await first.status()).state == "waiting"
        await app.emit("paid", {"total": "1"}, key="o-1")
        assert await first.result("20s") == "1 for o-1"


@pytest.mark.parametrize("ending", ["completed", "failed"])
async def test_the_event_that_ends_a_workflow_is_stored_and_shown(app, sql, ending):
    @app.workflow
    async def order(ctx: WorkflowContext) -> str | Fail:
        shipped = await ctx.wait_for("shipped", timeout="1h")
        return Fail("lost") if ending == "failed" else shipped

    async with serving(app):
        handle = await order.enqueue()
        await suspended(sql)
        await app.emit("shipped", "by train")
        await until(lambda: sql("select state from tenure.history"), is_=[(ending,)])
        [step] = (await app.workflows.get(handle.id)).steps
    assert (step.state, step.output) == ("done", "by train")


async def test_what_a_canceled_workflow_waited_for_is_not_shown_as_open(app, sql):
    @app.workflow
    async def order(ctx: WorkflowContext) -> None:
        await ctx.wait_for("shipped", timeout="1h")

    async with serving(app):
        handle = await order.enqueue()
        await suspended(sql)
        await handle.cancel()
        [step] = (await app.workflows.get(handle.id)).steps
    assert (step.state, step.due_at) == ("ended", None)


async def test_an_event_that_was_sent_before_the_wait_is_not_lost_and_the_first_one_counts(app, sql):
    @app.workflow(retry=AT_ONCE)
    async def order(ctx: WorkflowContext) -> list[int]:
        first, again = await ctx.wait_for("paid", key=7), await ctx.wait_for("paid", key=7)
        await ctx.step("note", note, "x")
        if ctx.attempt == 1:
            sql("update tenure.events set payload = '99'")
            raise ValueError("not yet")
        return [first, again]

    await app.emit("paid", 1, key=7)
    await app.emit("paid", 2, key=7)
    await app.emit("paid", 3)
    async with serving(app):
        handle = await order.enqueue()
        assert await handle.result("20s") == [1, 1]
    assert sql("select name, what, state, output from tenure.steps order by number")[:2] == [
        ("paid", "wait", "done", 1),
        ("paid#2", "wait", "done", 1),
    ]


async def test_a_wait_ends_after_its_timeout_and_an_event_that_comes_later_changes_nothing(app, sql):
    waited = []

    @app.workflow
    async def order(ctx: WorkflowContext) -> str:
        try:
            await ctx.wait_for("paid", timeout="1h")
            waited.append("paid")
        except WaitTimeout:
            waited.append("timeout")
        await ctx.step("note", note, "x")
        await ctx.sleep("rest", "1h")
        return "done"

    async with serving(app):
        handle = await order.enqueue()
        await suspended(sql)
        assert sql("select position, run_at - clock_timestamp() > interval '59 minutes' from tenure.jobs") == [(0, True)]
        come_true(sql)
        await until(lambda: waited, is_=["timeout"])
        await suspended(sql)
        await app.emit("paid")
        come_true(sql)
        assert await handle.result("20s") == "done"
    assert waited == ["timeout", "timeout"]


async def test_an_event_ends_a_wait_before_its_timeout(app, sql):
    @app.workflow
    async def order(ctx: WorkflowContext) -> str:
        return await ctx.wait_for("paid", timeout="1h", type=str)

    async with serving(app):
        handle = await order.enqueue()
        await suspended(sql)
        await app.emit("paid", "in time")
        assert await handle.result("20s") == "in time"


async def test_a_wait_that_ended_has_the_time_of_its_end_also_if_the_workflow_waits_for_something_else_then(app, sql):
    @app.workflow
    async def order(ctx: WorkflowContext) -> None:
        await ctx.wait_for("paid")
        await ctx.sleep("rest", "1h")

    async with serving(app):
        handle = await order.enqueue()
        await suspended(sql)
        await app.emit("paid")
        await until(lambda: sql("select 1 from tenure.steps where name = 'rest'"))
        assert sql("select name, state, ended_at is not null from tenure.steps order by number") == [
            ("paid", "done", True),
            ("rest", "open", False),
        ]
        await handle.cancel()


async def test_an_event_in_the_callers_transaction_is_sent_when_it_commits(app, sql, dsn):
    @app.workflow
    async def order(ctx: WorkflowContext) -> int:
        return await ctx.wait_for("paid", type=int)

    async with serving(app):
        handle = await order.enqueue()
        await suspended(sql)
        async with await psycopg.AsyncConnection.connect(dsn) as connection:
            await app.emit("paid", 1, conn=connection)
            await connection.rollback()
            await app.emit("paid", 2, conn=connection)
            assert sql("select count(*) from tenure.events") == [(0,)]
        assert await handle.result("20s") == 2


async def test_a_stream_delivers_every_event_once_in_order(app, sql):
    seen = []

    @app.workflow
    async def follow(ctx: WorkflowContext) -> list[int]:
        got = []
        async for payload in ctx.events("reading", key="m-1", type=int):
            got.append(await ctx.step("keep", keep, payload))
            if len(got) == 4:
                return got
        raise AssertionError("a stream does not end")

    async def keep(n: int) -> int:
        seen.append(n)
        return n

    for n in (1, 2):
        await app.emit("reading", n, key="m-1")
    async with serving(app):
        handle = await follow.enqueue()
        await until(lambda: seen, is_=[1, 2])
        await suspended(sql)
        await app.emit("reading", 0, key="m-2")
        await app.emit("reading", 3, key="m-1")
        await until(lambda: seen, is_=[1, 2, 3])
        await until(lambda: sql("select step from tenure.waits"), is_=[("reading#4",)])  # no wait that is over is kept
        await app.emit("reading", 4, key="m-1")
        assert await handle.result("20s") == [1, 2, 3, 4]
    assert seen == [1, 2, 3, 4]


async def test_signals_reach_one_workflow_each_once(app, sql):
    @app.workflow
    async def approval(ctx: WorkflowContext) -> list[str]:
        ctx.set_status({"waits for": "first"})
        first = await ctx.wait_for_signal("decide")
        ctx.set_status("waits for the second")
        second = await ctx.wait_for_signal("decide", type=str)
        return [first, second]

    async with serving(app):
        one, other = await approval.enqueue(), await approval.enqueue()
        await until(lambda: sql("select count(*) from tenure.waits where checked"), is_=[(2,)])
        assert await one.query() == {"waits for": "first"}
        await one.signal("decide", "yes")
        await until(one.query, is_="waits for the second")
        await one.signal("decide", "no", by="ann")
        assert await one.result("20s") == ["yes", "no"]
        assert (await other.status()).state == "waiting"
        assert await other.query() == {"waits for": "first"}
        with pytest.raises(NotPossible, match="is over"):
            await one.signal("decide", "too late")
    assert sql("select by from tenure.events order by id")[1] == ("ann",)


async def test_tasks_that_wait_for_the_same_signal_get_one_each(app, sql):
    @app.workflow
    async def votes(ctx: WorkflowContext) -> list[str]:
        async def vote() -> str:
            return await ctx.step("note", note, await ctx.wait_for_signal("vote", type=str))

        return await ctx.gather(vote(), vote(), vote())

    async with serving(app):
        handle = await votes.enqueue()
        await until(lambda: sql("select count(*) from tenure.waits where checked"), is_=[(3,)])
        for name in ("ann", "bob"):
            await handle.signal("vote", name)
        await until(lambda: sql("select count(*) from tenure.steps where what = 'step'"), is_=[(2,)])
        await handle.signal("vote", "eve")
        assert sorted(await handle.result("20s")) == ["ann", "bob", "eve"]


async def test_a_signal_to_a_job_that_does_not_exist(app):
    @app.workflow
    async def approval(ctx: WorkflowContext) -> None: ...

    with pytest.raises(JobNotFound):
        await approval.handle("01900000-0000-7000-8000-000000000000").signal("decide")


async def test_a_job_without_a_status_answers_none(app):
    @app.job
    async def plain() -> None: ...

    assert await (await plain.enqueue()).query() is None


@pytest.mark.parametrize("key", ["", "x" * 501, 1.5, True])
async def test_a_key_that_cannot_be_stored_is_refused(app, key):
    with pytest.raises(ConfigError, match="the key of an event"):
        await app.emit("paid", key=key)


async def test_a_workflow_waits_for_one_of_two_things(app, sql):
    import asyncio

    @app.workflow
    async def race(ctx: WorkflowContext) -> str:
        tasks = {
            asyncio.create_task(ctx.wait_for("paid", type=str)),
            asyncio.create_task(ctx.wait_for_signal("cancel")),
        }
        done, others = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in others:
            task.cancel()
        return done.pop().result()

    async with serving(app):
        handle = await race.enqueue()
        await until(lambda: sql("select count(*) from tenure.waits where checked"), is_=[(2,)])
        await handle.signal("cancel", "stop")
        assert await handle.result("20s") == "stop"


async def test_an_event_that_is_committed_later_does_not_replace_the_first_one(app, dsn, sql):
    """Its id is smaller, because its transaction began earlier."""
    received: list[int] = []

    async def note(n: int) -> int:
        received.append(n)
        if len(received) == 1:
            await late.commit()
            raise ConnectionError("no answer")
        return n

    @app.workflow(retry=AT_ONCE)
    async def order(ctx: WorkflowContext) -> int:
        return await ctx.step("note", note, await ctx.wait_for("paid"))

    async with await psycopg.AsyncConnection.connect(dsn) as late, serving(app):
        await app.emit("paid", 1, conn=late)
        handle = await order.enqueue()
        await app.emit("paid", 2)
        assert await handle.result("20s") == 2
    assert received == [2, 2]
