"""Tasks of a workflow that are canceled while they wait."""

from __future__ import annotations

import asyncio

from tenure import WorkflowContext
from tests.waiting import until
from tests.worker.serving import serving
from tests.workflows.test_sleep import come_true, note, suspended


async def test_a_wait_whose_task_is_canceled_is_not_waited_for(app, sql):
    @app.workflow
    async def order(ctx: WorkflowContext) -> str:
        paid = asyncio.create_task(ctx.wait_for("paid"))
        resized = asyncio.create_task(ctx.wait_for_signal("resized"))
        await ctx.step("first", note, "a")
        paid.cancel()
        resized.cancel()
        await ctx.sleep("rest", "1h")
        return await ctx.step("second", note, "b")

    async with serving(app):
        handle = await order.enqueue()
        await suspended(sql)
        assert sql("select name from tenure.steps order by number") == [("first",), ("rest",)]
        assert sql("select count(*) from tenure.waits") == [(0,)]
        come_true(sql)
        assert await handle.result("20s") == "b"


async def test_a_recorded_wait_whose_task_is_canceled_before_it_begins_is_not_taken_for_changed_code(app, sql):
    @app.workflow
    async def order(ctx: WorkflowContext) -> str:
        paid = asyncio.create_task(ctx.wait_for("paid"))
        await ctx.sleep("rest", "1h")
        paid.cancel()  # in the run after the sleep, the task has not begun yet
        await ctx.step("first", note, "a")
        await ctx.sleep("again", "1h")
        return await ctx.step("second", note, "b")

    async with serving(app):
        handle = await order.enqueue()
        await suspended(sql)
        come_true(sql)
        await until(lambda: sql("select count(*) from tenure.steps where name = 'again' and state = 'open'"), is_=[(1,)])
        assert sql("select count(*) from tenure.waits") == [(0,)]
        come_true(sql)
        assert await handle.result("20s") == "b"


async def test_the_first_of_a_sleep_and_an_event_wins_and_the_other_one_is_dropped(app, sql):
    @app.workflow
    async def order(ctx: WorkflowContext) -> str:
        paid = asyncio.create_task(ctx.wait_for("paid"))
        late = asyncio.create_task(ctx.sleep("late", "1h"))
        done, rest = await asyncio.wait({paid, late}, return_when=asyncio.FIRST_COMPLETED)
        for one in rest:
            one.cancel()
        first = "late" if late in done else "paid"
        await ctx.step("note", note, first)
        await ctx.wait_for_signal("go")
        return first

    async with serving(app):
        handle = await order.enqueue()
        await suspended(sql)
        come_true(sql)
        await until(lambda: sql("select event from tenure.waits"), is_=[("go",)])
        # It comes too late: the workflow neither wakes up nor decides differently.
        await app.emit("paid")
        await handle.signal("go")
        assert await handle.result("20s") == "late"
    assert sql("select output from tenure.steps where name = 'note'") == [("late",)]


async def test_a_step_in_a_task_that_no_one_awaits_ends_with_its_workflow(app, sql):
    ends: list[str] = []

    async def slow() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ends.append("slow")

    @app.workflow
    async def order(ctx: WorkflowContext) -> str:
        forgotten = asyncio.create_task(ctx.step("slow", slow))
        await ctx.step("first", note, "a")
        ends.append(f"done is {forgotten.done()}")
        return "done"

    async with serving(app):
        assert await (await order.enqueue()).result("20s") == "done"
    assert ends == ["done is False", "slow"]
    assert sql("select name from tenure.steps") == [("first",)]
