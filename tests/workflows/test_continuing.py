"""Workflows that begin again: `ctx.continue_as_new()` keeps their identity."""

from __future__ import annotations

from typing import Any

import pytest

from tenure import Continue, Fail, JobCanceled, JobFailed, NotPossible, WorkflowContext
from tests.waiting import until
from tests.worker.serving import serving
from tests.workflows.test_sleep import come_true, suspended


@pytest.fixture
def votes(app: Any) -> Any:
    """Each run receives one vote, and the next one begins; after three, it returns them."""

    @app.workflow
    async def votes(ctx: WorkflowContext, got: list[str]) -> list[str] | Continue[Any]:
        ctx.set_status(f"has {len(got)}")
        got = [*got, await ctx.wait_for_signal("vote", type=str)]
        return got if len(got) == 3 else ctx.continue_as_new(got)

    return votes


def waits(sql: Any) -> Any:
    return until(
        lambda: sql("select count(*) from tenure.waits w join tenure.jobs j on j.id = w.job_id where checked"), is_=[(1,)]
    )


async def test_signals_follow_a_workflow_that_begins_again_each_once(app, votes, sql):
    async with serving(app):
        handle = await votes.enqueue([])
        await waits(sql)
        await handle.signal("vote", "ann")
        await until(handle.query, is_="has 1")
        await waits(sql)
        [(second,)] = sql("select id from tenure.jobs")
        assert second != handle.id
        await app.workflows.signal(second, "vote", "bob")
        await until(handle.query, is_="has 2")
        await handle.signal("vote", "eve")
        assert await handle.result("20s") == ["ann", "bob", "eve"]
        with pytest.raises(NotPossible, match="is over"):
            await handle.signal("vote", "too late")
        assert await handle.query() == "has 2"


async def test_signals_that_a_run_has_not_received_are_for_the_next_one(app, votes):
    handle = await votes.enqueue([])
    for name in ("ann", "bob", "eve"):
        await handle.signal("vote", name)
    async with serving(app):
        assert await handle.result("20s") == ["ann", "bob", "eve"]


async def test_what_was_received_stays_received_behind_a_job_of_another_kind(app, sql):
    @app.job
    async def between(got: list[str]) -> Continue[Any]:
        return Continue(second, got)

    @app.workflow
    async def first(ctx: WorkflowContext) -> Continue[Any]:
        raise Continue(between, [await ctx.wait_for_signal("vote", type=str)])

    @app.workflow
    async def second(ctx: WorkflowContext, got: list[str]) -> list[str]:
        return [*got, await ctx.wait_for_signal("vote", type=str)]

    handle = await first.enqueue()
    await handle.signal("vote", "ann")
    async with serving(app):
        await until(lambda: sql("select kind from tenure.jobs where state = 'waiting'"), is_=[("second",)])
        await handle.signal("vote", "bob")
        assert await handle.result("20s") == ["ann", "bob"]


async def test_a_workflow_that_has_begun_again_is_canceled_by_its_first_id(app, votes, sql):
    async with serving(app):
        handle = await votes.enqueue([])
        await handle.signal("vote", "ann")
        await until(handle.query, is_="has 1")
        await waits(sql)
        assert await app.workflows.cancel(handle.id, "enough")
        with pytest.raises(JobCanceled, match="enough"):
            await handle.result("20s")
        assert not await app.workflows.cancel(handle.id)


async def test_a_workflow_that_begins_again_keeps_the_options_of_its_call(app, votes, sql):
    handle = await votes.using(
        queue="polls", priority=70, max_attempts=7, timeout="1h", meta={"by": "ann"}, auth={"user": 1}
    ).enqueue([])
    await handle.signal("vote", "ann")
    async with serving(app, queues=["polls"]):
        await until(handle.query, is_="has 1")
        await waits(sql)
    query = "select queue, priority, max_attempts, timeout, meta, auth from {}"
    assert sql(query.format("tenure.jobs")) == sql(query.format("tenure.history")) == [
        ("polls", 70, 7, 3600.0, {"by": "ann"}, {"user": 1})
    ]  # fmt: skip


async def test_a_copy_and_a_fork_begin_a_chain_of_their_own(app, votes, sql):
    async with serving(app):
        handle = await votes.enqueue([])
        for name in ("ann", "bob", "eve"):
            await handle.signal("vote", name)
        await handle.result("20s")
        [(last,)] = sql("select id from tenure.history where next_id is null")
        again = await votes.handle(last).retry()
        await again.signal("vote", "kim")
        assert await again.result("20s") == ["ann", "bob", "kim"]


async def test_what_is_registered_to_be_undone_stays_done_when_the_workflow_begins_again(app):
    """Also if `Continue` is raised."""
    did = []

    async def undo() -> None:
        did.append("undo")

    @app.workflow(max_attempts=1)
    async def order(ctx: WorkflowContext, ending: str = "") -> str:
        if ending:
            raise Fail(ending)
        await ctx.on_rollback(undo)
        raise ctx.continue_as_new("out of stock")

    async with serving(app):
        with pytest.raises(JobFailed, match="out of stock"):
            await (await order.enqueue()).result("20s")
    assert did == []


async def test_a_workflow_that_sleeps_between_its_runs_receives_what_was_sent_meanwhile(app, sql):
    @app.workflow
    async def poll(ctx: WorkflowContext, again: bool = False) -> str | Continue[Any]:
        if not again:
            return ctx.continue_as_new(True)
        await ctx.sleep("rest", "1h")
        return await ctx.wait_for_signal("vote", type=str)

    async with serving(app):
        handle = await poll.enqueue()
        await suspended(sql)
        await handle.signal("vote", "ann")
        come_true(sql)
        assert await handle.result("20s") == "ann"


@pytest.mark.parametrize("given", ["gpu", None])
async def test_it_keeps_the_capability_of_its_call(app, sql, given):
    @app.workflow(capability="disk")
    async def render(ctx: WorkflowContext, again: bool = False) -> str | Continue[Any]:
        return "done" if again else ctx.continue_as_new(True)

    async with serving(app, capabilities=["gpu", "disk"]):
        call = render if given is None else render.using(capability=given)
        assert await (await call.enqueue()).result("20s") == "done"
    assert sql("select capability from tenure.history") == [(given or "disk",)] * 2
