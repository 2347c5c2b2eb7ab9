"""Jobs that workflows start and wait for."""

from __future__ import annotations

import asyncio
from datetime import date
from typing import Any

import pytest

from tenure import Continue, Fail, JobCanceled, JobFailed, Retry, WorkflowContext
from tests.waiting import until
from tests.worker.serving import serving

AT_ONCE = Retry(max_attempts=3, initial="10ms", max_backoff="10ms", jitter=False)


@pytest.fixture
def ran() -> list[Any]:
    return []


@pytest.fixture
def double(app: Any, ran: list[Any]) -> Any:
    @app.job(retry=1)
    async def double(n: int) -> int:
        ran.append(n)
        if n < 0:
            raise ValueError("too small")
        return 2 * n

    return double


def states(sql: Any) -> dict[str, str]:
    return dict(sql("select kind, state from tenure.all_jobs"))


async def test_a_workflow_waits_for_a_job_without_a_slot(app, double, sql):
    @app.workflow
    async def parent(ctx: WorkflowContext) -> int:
        return await ctx.call(double, 4) + ctx.fence

    async with serving(app, concurrency=1):
        handle = await parent.enqueue()
        assert await handle.result("20s") == 10
    assert sql("select parent_id from tenure.history where kind = 'double'") == [(handle.id,)]
    [(name, what, state, output)] = sql("select name, what, state, output from tenure.steps")
    assert (name, what, state) == ("double", "call", "done")
    assert (output["state"], output["output"]) == ("completed", 8)


async def test_the_results_of_children_are_typed_and_recorded(app, sql):
    seen = []

    @app.job
    async def today() -> date:
        return date(2030, 1, 1)

    @app.workflow(retry=AT_ONCE)
    async def parent(ctx: WorkflowContext) -> str:
        day = await ctx.call(today)
        seen.append(day)
        await ctx.step("note", note)
        if ctx.attempt == 1:
            raise ValueError("not yet")
        return day.isoformat()

    async def note() -> None: ...

    async with serving(app):
        assert await (await parent.enqueue()).result("20s") == "2030-01-01"
    assert seen == [date(2030, 1, 1)] * 2
    assert sql("select count(*) from tenure.history where kind = 'today'") == [(1,)]


async def test_many_children_at_once_wake_their_workflow_once(app, double, sql):
    runs = []

    @app.workflow
    async def parent(ctx: WorkflowContext) -> list[int]:
        runs.append(ctx.fence)
        return await ctx.gather(*(ctx.call(double, n) for n in range(50)))

    async with serving(app):
        assert await (await parent.enqueue()).result("30s") == [2 * n for n in range(50)]
    assert runs == [1, 2]


async def test_tasks_with_children_go_on_as_soon_as_their_own_child_has_ended(app, double, ran, sql):
    slow = asyncio.Event()

    @app.job
    async def wait_long() -> str:
        await slow.wait()
        return "slow"

    @app.workflow
    async def parent(ctx: WorkflowContext) -> list[Any]:
        async def pipeline() -> int:
            return await ctx.call(double, await ctx.call(double, 1))

        return await asyncio.gather(ctx.call(wait_long), pipeline())

    async with serving(app):
        handle = await parent.enqueue()
        await until(lambda: ran, is_=[1, 2])
        slow.set()
        assert await handle.result("20s") == ["slow", 4]


async def test_a_child_that_fails_or_is_canceled_raises_the_same_in_every_run(app, double, sql):
    seen = []

    @app.job
    async def never() -> None: ...

    async def note() -> None: ...

    @app.workflow(retry=AT_ONCE)
    async def parent(ctx: WorkflowContext) -> str:
        try:
            await ctx.call(double, -1)
        except JobFailed as error:
            seen.append((error.error_type, error.error_message))
        try:
            await ctx.call(never.using(queue="elsewhere"))
        except JobCanceled as error:
            seen.append(error.reason)
        await ctx.step("note", note)
        if ctx.attempt == 1:
            raise ValueError("not yet")
        return "handled"

    async with serving(app, queues=["default"]):
        handle = await parent.enqueue()
        [(child,)] = await until(lambda: sql("select id from tenure.jobs where kind = 'never'"))
        await app.client().cancel(child, reason="not needed")
        assert await handle.result("20s") == "handled"
    # Once more when the second child had ended, and once for the second attempt.
    assert seen == [("ValueError", "too small"), *[("ValueError", "too small"), "canceled: not needed"] * 2]


async def test_started_children_are_joined_later(app, double, ran):
    @app.workflow
    async def parent(ctx: WorkflowContext) -> list[int]:
        first, second = await ctx.start(double, 1), await ctx.start(double.using(priority="high"), 2)
        return [await second.join(), await first.join()]

    async with serving(app):
        assert await (await parent.enqueue()).result("20s") == [4, 2]
    assert sorted(ran) == [1, 2]


async def test_the_result_of_a_child_is_that_of_its_chain(app, double):
    @app.job
    async def first(n: int) -> Continue[int]:
        return Continue(double, n + 1)

    @app.workflow
    async def parent(ctx: WorkflowContext) -> int:
        return await ctx.call(first, 4)

    async with serving(app):
        assert await (await parent.enqueue()).result("20s") == 10


async def test_workflows_call_workflows(app, double):
    @app.workflow
    async def inner(ctx: WorkflowContext, n: int) -> int:
        return await ctx.call(double, n) + 1

    @app.workflow
    async def outer(ctx: WorkflowContext) -> int:
        return sum(await ctx.gather(*(ctx.call(inner, n) for n in (1, 2, 3))))

    async with serving(app):
        assert await (await outer.enqueue()).result("30s") == 15


async def test_a_child_whose_key_is_taken_is_the_earlier_job(app, double, ran):
    @app.workflow
    async def parent(ctx: WorkflowContext) -> int:
        return await ctx.call(double.using(key="k1"), 7)

    async with serving(app):
        await (await double.using(key="k1").enqueue(7)).result("20s")
        assert await (await parent.enqueue()).result("20s") == 14
    assert ran == [7]


async def test_a_workflow_that_begins_again_forgets_what_it_recorded_and_stays_in_its_chain(app, sql):
    async def count(n: int) -> int:
        return n + 1

    @app.workflow
    async def loop(ctx: WorkflowContext, n: int = 0) -> int | Continue[Any]:
        n = await ctx.step("count", count, n)
        return n if n == 3 else ctx.continue_as_new(n)

    async with serving(app):
        handle = await loop.enqueue()
        assert await handle.result("20s") == 3
    assert sql("select count(distinct id), count(distinct coalesce(chain_id, id)) from tenure.history") == [(3, 1)]
    assert sql("select count(*), count(distinct job_id) from tenure.steps") == [(3, 3)]


async def test_a_run_that_has_lost_its_job_starts_no_child(app, double, ran, sql):
    @app.workflow(max_attempts=1)
    async def parent(ctx: WorkflowContext) -> None:
        sql("update tenure.jobs set claim_id = gen_random_uuid(), fence = fence + 1 where kind = 'parent'")
        await ctx.call(double, 1)

    async with serving(app):
        handle = await parent.enqueue()
        async for update in handle.watch():
            if update.status.fence > 1:
                break
    assert sql("select count(*) from tenure.all_jobs where kind = 'double'") == [(0,)]
    assert sql("select count(*) from tenure.steps") == [(0,)]


async def test_a_failure_after_children_is_a_failure_of_the_workflow_only(app, double, sql):
    @app.workflow
    async def parent(ctx: WorkflowContext) -> None:
        await ctx.call(double, 1)
        raise Fail("no")

    async with serving(app):
        with pytest.raises(JobFailed):
            await (await parent.enqueue()).result("20s")
    assert states(sql) == {"double": "completed", "parent": "failed"}


async def test_children_pass_the_hooks_around_an_enqueue_once(app, double, sql):
    passed = []

    @app.around_enqueue
    def tenant(calls: Any) -> Any:
        passed.extend(call.kind for call in calls)
        yield [call.with_meta(tenant="acme") for call in calls]

    @app.workflow
    async def parent(ctx: WorkflowContext) -> int:
        started = await ctx.start(double, 1)
        return await ctx.call(double.using(priority="high"), 4) + await started.join()

    async with serving(app):
        assert await (await parent.enqueue()).result("20s") == 10
    assert passed == ["parent", "double", "double"]
    assert sql("select meta from tenure.history where kind = 'double'") == [({"tenant": "acme"},)] * 2


async def test_a_gather_of_children_does_not_wait_for_those_of_other_tasks(app):
    """One task waits for a child that another task lets continue, once its own children have ended."""

    @app.job
    async def quick(n: int) -> int:
        return n

    @app.workflow
    async def patient(ctx: WorkflowContext, key: str) -> str:
        return await ctx.wait_for("go", key=key, type=str)

    async def gathers(ctx: WorkflowContext) -> list[int]:
        found = await ctx.gather(ctx.call(quick, 1), ctx.call(quick, 2))
        await ctx.step("go", emit, "go", "gone", key_of(ctx))
        return found

    async def waits(ctx: WorkflowContext) -> str:
        return await ctx.call(patient, key_of(ctx))

    def key_of(ctx: WorkflowContext) -> str:
        return str(ctx.job_id)

    @app.workflow
    async def flow(ctx: WorkflowContext) -> list[Any]:
        return [*await asyncio.gather(gathers(ctx), waits(ctx))]

    async def emit(event: str, payload: str, key: str) -> None:
        await app.emit(event, payload, key=key)

    async with serving(app):
        assert await (await flow.enqueue()).result("30s") == [[1, 2], "gone"]
