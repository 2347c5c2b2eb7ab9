"""Workflows are jobs: they have keys, priorities, limits and schedules."""

from __future__ import annotations

import asyncio

from tenure import WorkflowContext
from tests.waiting import until
from tests.worker.serving import serving
from tests.workflows.test_sleep import come_true, suspended


async def test_a_workflow_is_enqueued_once_per_key_also_while_it_waits(app, sql):
    @app.workflow(key=lambda order: order)
    async def handle_order(ctx: WorkflowContext, order: str) -> str:
        await ctx.sleep("rest", "1h")
        return order

    async with serving(app):
        first = await handle_order.enqueue("o-1")
        await suspended(sql)
        second = await handle_order.enqueue("o-1")
        assert (second.id, second.existed) == (first.id, True)
        come_true(sql)
        assert await second.result("20s") == "o-1"


async def test_workflows_start_by_priority(app):
    began = []

    @app.workflow
    async def order(ctx: WorkflowContext, name: str) -> None:
        began.append(name)

    handles = [await order.using(priority=priority).enqueue(priority) for priority in ("low", "normal", "high")]
    async with serving(app, concurrency=1):
        for handle in handles:
            await handle.result("20s")
    assert began == ["high", "normal", "low"]


async def test_a_workflow_under_a_limit_holds_its_place_while_it_runs_and_not_while_it_waits(app, sql):
    running, most = 0, 0
    may_end = asyncio.Event()

    async def work() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await may_end.wait()
        running -= 1

    @app.workflow(concurrency=1)
    async def order(ctx: WorkflowContext) -> str:
        await ctx.sleep("rest", "1h")
        await ctx.step("work", work)
        return "done"

    async with serving(app):
        handles = [await order.enqueue() for _ in range(3)]
        await until(lambda: sql("select count(*) from tenure.jobs where state = 'waiting'"), is_=[(3,)])
        come_true(sql)
        await until(lambda: (running, sql("select count(*) from tenure.jobs where state = 'pending'")), is_=(1, [(2,)]))
        may_end.set()
        assert [await handle.result("20s") for handle in handles] == ["done"] * 3
    assert most == 1


async def test_a_schedule_starts_a_workflow(app, sql):
    async def note(text: str) -> str:
        return text

    @app.workflow
    async def report(ctx: WorkflowContext, day: str) -> str:
        return await ctx.step("note", note, day)

    async with serving(app):
        await app.schedules.create("yearly", report, "0 0 1 1 *", input={"day": "monday"})
        assert await (await app.schedules.run_now("yearly")).result("20s") == "monday"
    assert sql("select name, state from tenure.steps") == [("note", "done")]
