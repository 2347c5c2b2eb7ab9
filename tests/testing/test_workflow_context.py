"""A workflow that a test calls directly."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from uuid import uuid4

import pytest

from tenure import ConfigError, JobFailed, Retry, StepFailed, Tenure, WaitTimeout, WorkflowContext
from tenure.testing import bound, context, temporary_database, workflow_context

app = Tenure()
undone: list[str] = []


async def reserve(order: str) -> str:
    return f"stock for {order}"


def charge(order: str, cents: int) -> dict[str, int]:
    if cents < 0:
        raise ValueError("a negative amount")
    return {order: cents}


def refund(order: str) -> None:
    undone.append(order)


@app.job
async def pack(order: str) -> str:
    return f"packed {order}"


@app.workflow
async def sell(ctx: WorkflowContext, order: str, cents: int = 5) -> str:
    await ctx.on_rollback(refund, order)
    await ctx.step("reserve", reserve, order)
    receipt = await ctx.step("charge", charge, order, cents, retry=Retry(max_attempts=5))
    await ctx.sleep("cool off", "3d")
    paid = await ctx.wait_for("paid", key=order, timeout="2d")
    parcel = await ctx.call(pack, order)
    return f"{receipt[order]} {paid} {parcel}"


async def test_steps_run_and_waits_end_at_once():
    ctx = workflow_context(sell, events={"paid": ["ann"]}, results={pack: "a parcel"})
    assert await sell(ctx, "o-17") == "5 ann a parcel"
    assert [(step.name, step.what) for step in ctx.steps] == [
        ("undo refund", "undo"),
        ("reserve", "step"),
        ("charge", "step"),
        ("cool off", "sleep"),
        ("paid", "wait"),
        ("pack", "call"),
    ]
    assert ctx.steps[3].output == timedelta(days=3).total_seconds()
    assert ctx.kind == "sell"


async def test_a_step_that_fails_raises_what_a_worker_raises_and_the_rest_can_be_undone():
    undone.clear()
    ctx = workflow_context(sell)
    with pytest.raises(StepFailed, match="a negative amount") as caught:
        await sell(ctx, "o-1", cents=-1)
    assert caught.value.error_type == "ValueError"
    assert undone == []
    await ctx.roll_back()
    assert undone == ["o-1"]


async def test_without_an_event_a_wait_times_out_if_it_can():
    with pytest.raises(WaitTimeout):
        await sell(workflow_context(), "o-1")

    @Tenure().workflow
    async def waits(ctx: WorkflowContext) -> None:
        await ctx.wait_for("never")

    with pytest.raises(ConfigError, match=r"waits for event 'never', number 1, and the test has sent 0"):
        await waits(workflow_context())


async def test_results_of_jobs_are_given_by_the_test():
    with pytest.raises(ConfigError, match=r"results=\{'pack'"):
        await sell(workflow_context(events={"paid": [1]}), "o-1")
    failed = JobFailed(uuid4(), "pack", "failed", "boom")
    with pytest.raises(JobFailed):
        await sell(workflow_context(events={"paid": [1]}, results={"pack": failed}), "o-1")


async def test_events_come_in_order_and_tasks_have_names_of_their_own():
    @Tenure().workflow
    async def many(ctx: WorkflowContext) -> list[object]:
        first = await ctx.wait_for_signal("go")
        second = await ctx.wait_for_signal("go")
        pair = await ctx.gather(ctx.step("one", charge, "a", 1), ctx.step("two", charge, "b", 2))
        tasks = await asyncio.gather(ctx.step("one", charge, "c", 3), _two_steps(ctx))
        child = await ctx.start(pack, "x")
        ctx.set_status("nearly")
        assert ctx.now() is not None
        assert ctx.patched("new way")
        return [first, second, *pair, *tasks, await child.join()]

    ctx = workflow_context(events={"go": [1, {"n": 2}]}, results={pack: "p"})
    assert await many(ctx) == [1, {"n": 2}, {"a": 1}, {"b": 2}, {"c": 3}, {"e": 5}, "p"]
    assert len({step.name for step in ctx.steps}) == len(ctx.steps)
    assert "status" not in {step.what for step in ctx.steps}


async def _two_steps(ctx: WorkflowContext) -> dict[str, int]:
    await ctx.step("one", charge, "d", 4)
    return await ctx.step("two", charge, "e", 5)


async def test_a_transaction_is_one_of_the_database_of_the_app(server_dsn):
    @app.workflow(name="writes")
    async def writes(ctx: WorkflowContext) -> int:
        return await ctx.transaction("count", _count)

    with temporary_database(server_dsn) as dsn, bound(app, dsn):
        assert await writes(workflow_context(writes)) == 0


async def _count(connection) -> int:
    cursor = await connection.execute("select count(*) from tenure.jobs")
    return (await cursor.fetchone())[0]


def test_the_context_of_jobs_is_not_for_workflows():
    with pytest.raises(ConfigError, match="workflow_context"):
        context(sell)
