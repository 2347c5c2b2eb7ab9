"""Workflows whose code changes: patches, held runs, forks, versions."""

from __future__ import annotations

from typing import Any

import pytest

from tenure import JobNotFound, JobSettled, NotPossible, WorkflowContext
from tests.waiting import until
from tests.worker.serving import serving
from tests.workflows.test_sleep import come_true, suspended

NOWHERE = "01900000-0000-7000-8000-000000000000"


@pytest.fixture
def did() -> list[str]:
    return []


@pytest.fixture
def code() -> list[str]:
    """The steps of the workflow `order`, which a test may change."""
    return ["reserve", "pay", "rest", "ship"]


@pytest.fixture
def order(app: Any, did: list[str], code: list[str]) -> Any:
    async def do(name: str) -> str:
        did.append(name)
        return f"{name} {did.count(name)}"

    @app.workflow
    async def order(ctx: WorkflowContext) -> list[str]:
        results = []
        for name in code:
            if name == "rest":
                await ctx.sleep("rest", "1h")
            elif name.startswith("patched "):
                if ctx.patched(name):
                    results.append(await ctx.step(name, do, name))
            else:
                results.append(await ctx.step(name, do, name))
        return results

    return order


async def test_a_patch_concerns_runs_that_have_not_passed_it(app, order, code, did, sql):
    async with serving(app):
        old = await order.enqueue()
        await suspended(sql)
        code[:] = ["reserve", "patched check", "pay", "rest", "ship", "patched tell"]
        come_true(sql)
        assert await old.result("20s") == ["reserve 1", "pay 1", "ship 1", "patched tell 1"]
        new = await order.enqueue()
        await suspended(sql)
        come_true(sql)
        assert await new.result("20s") == ["reserve 2", "patched check 1", "pay 2", "ship 2", "patched tell 2"]


async def test_a_held_run_continues_once_the_code_is_back(app, order, code, did, sql):
    ended = []
    app.on(JobSettled)(lambda event: ended.append(event.what))
    async with serving(app):
        handle = await order.enqueue()
        await suspended(sql)
        with pytest.raises(NotPossible, match="not held"):
            await app.workflows.resume(handle.id)
        before = list(code)
        code[:] = ["reserve", "rest", "ship"]
        come_true(sql)
        await until(lambda: sql("select 1 from tenure.jobs where system ? 'held'"))
        status = await app.workflows.get(handle.id)
        assert status.held is not None
        assert "'pay'" in status.held
        [finding] = [one for one in (await app.client().probe()).findings if one.code == "held_workflows"]
        assert str(handle.id) in finding.way_out
        code[:] = before
        await app.workflows.resume(handle.id, by="ann")
        assert await handle.result("20s") == ["reserve 1", "pay 1", "ship 1"]
        assert "held_workflows" not in [one.code for one in (await app.client().probe()).findings]
        with pytest.raises(NotPossible, match="is over"):
            await app.workflows.resume(handle.id)
    assert sql("select what, by from tenure.incidents") == [("resumed", "ann")]
    assert (await handle.status()).system is None
    assert ended == ["suspended", "held", "completed"]


async def test_what_the_wrong_code_added_does_not_hold_the_right_code(app, sql):
    wrong = []

    async def pay() -> str:
        return "paid"

    @app.workflow
    async def order(ctx: WorkflowContext) -> str:
        if wrong:
            ctx.now()
            ctx.patched("pay later")
            return await ctx.step("pay later", pay)
        receipt = await ctx.step("pay", pay)
        await ctx.sleep("rest", "1h")
        return receipt

    async with serving(app):
        handle = await order.enqueue()
        await suspended(sql)
        wrong.append(True)
        come_true(sql)
        await until(lambda: sql("select 1 from tenure.jobs where system ? 'held'"))
        assert sql("select name from tenure.steps order by number") == [("pay",), ("rest",)]
        wrong.clear()
        await app.workflows.resume(handle.id)
        assert await handle.result("20s") == "paid"


async def test_the_copy_of_a_held_run_is_not_held(app, sql):
    wrong = []

    @app.job
    async def pay() -> str:
        return "paid"

    @app.workflow
    async def order(ctx: WorkflowContext) -> str:
        if wrong:
            return await ctx.call(pay.using(queue="later"))
        await ctx.sleep("rest", "1h")
        return await ctx.call(pay)

    async with serving(app):
        handle = await order.enqueue()
        await suspended(sql)
        wrong.append(True)
        come_true(sql)
        await until(lambda: sql("select 1 from tenure.jobs where system ? 'held'"))
        await handle.cancel()
        wrong.clear()
        again = await handle.retry()
        await suspended(sql)
        assert sql("select system - 'retry_of' from tenure.jobs") == [({},)]
        come_true(sql)
        assert await again.result("20s") == "paid"


async def test_a_fork_keeps_what_was_recorded_before_a_step(app, order, did, sql):
    async with serving(app):
        handle = await order.enqueue()
        await suspended(sql)
        come_true(sql)
        assert await handle.result("20s") == ["reserve 1", "pay 1", "ship 1"]
        forked = await app.workflows.fork(handle.id, from_step="pay")
        await suspended(sql)
        come_true(sql)
        assert await forked.result("20s") == ["reserve 1", "pay 2", "ship 2"]
        assert (await handle.status()).output == ["reserve 1", "pay 1", "ship 1"]
        again = await app.workflows.fork(forked.id)
        await again.result("20s")
    assert did == ["reserve", "pay", "ship", "pay", "ship"]
    assert (await forked.status()).system == {"forked": str(handle.id)}


async def test_what_cannot_be_forked_or_resumed(app, order, sql):
    handle = await order.enqueue()
    with pytest.raises(NotPossible, match="has not recorded a step 'nothing'"):
        await app.workflows.fork(handle.id, from_step="nothing")
    with pytest.raises(JobNotFound):
        await app.workflows.fork(NOWHERE)
    with pytest.raises(JobNotFound):
        await app.workflows.resume(NOWHERE)
    with pytest.raises(JobNotFound):
        await app.workflows.get(NOWHERE)


async def test_runs_stay_with_workers_of_their_version_until_they_are_moved(app, sql, dsn):
    from tenure import Tenure

    ran = []

    def define(version: str) -> Any:
        another = Tenure(dsn)

        @another.workflow(version=version)
        async def order(ctx: WorkflowContext) -> str:
            await ctx.sleep("rest", "1h")
            ran.append(version)
            return version

        return another, order

    old, order = define("1")
    async with serving(old):
        first, second = await order.enqueue(), await order.enqueue()
        await until(lambda: sql("select state, capability from tenure.jobs"), is_=[("waiting", "order@1")] * 2)
    await old.close()
    new, _ = define("2")
    async with serving(new):
        come_true(sql)
        await until(lambda: sql("select state from tenure.jobs"), is_=[("pending",)] * 2)
        passed = sql("select returns from tenure.queues")
        await new.workflows.resume(first.id, version="2")
        assert sql("select returns from tenure.queues") != passed, "workers of the new version must look below their cursors"
        assert await new.workflows.handle(first.id).result("20s") == "2"
        assert (await new.workflows.get(second.id)).job.state == "pending"
    await new.close()
    assert ran == ["2"]


async def test_workflows_are_listed_newest_first_without_other_jobs(app, order, sql):
    @app.job
    async def plain() -> None: ...

    @app.workflow
    async def another(ctx: WorkflowContext) -> None: ...

    first, _, third = await order.enqueue(), await plain.enqueue(), await another.enqueue()
    assert [job.id for job in await app.workflows.list()] == [third.id, first.id]
    assert [job.id for job in await app.workflows.list(kind="order", state="pending")] == [first.id]
    assert await app.workflows.list(state="waiting") == []
    assert await app.workflows.kinds() == ["another", "order"]


async def test_a_workflow_with_its_steps(app, order, sql):
    async with serving(app):
        handle = await order.enqueue()
        await suspended(sql)
        status = await app.workflows.get(handle.id)
        assert [(step.name, step.what, step.state, step.output) for step in status.steps] == [
            ("reserve", "step", "done", "reserve 1"),
            ("pay", "step", "done", "pay 1"),
            ("rest", "sleep", "open", None),
        ]
        assert [step.name for step in status.waits] == ["rest"]
        assert status.waits[0].due_at is not None
        assert status.to_json()["steps"][0]["name"] == "reserve"
        assert await app.workflows.cancel(handle.id)


async def test_a_fork_has_the_results_of_the_chains_that_the_workflow_has_waited_for(app, sql):
    @app.job
    async def price() -> int:
        return 7

    @app.workflow
    async def order(ctx: WorkflowContext) -> int:
        [found] = ctx.blockers
        return int(found)

    async with serving(app):
        handle = await order.using(after=[await price.enqueue()]).enqueue()
        assert await handle.result("20s") == 7
        assert await (await app.workflows.fork(handle.id)).result("20s") == 7
