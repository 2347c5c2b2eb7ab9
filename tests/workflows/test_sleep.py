"""Workflows that wait for a time: suspended, resumed, canceled, held."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tenure import ConfigError, JobCanceled, Retry, WorkflowContext
from tests.waiting import until
from tests.worker.serving import serving

AT_ONCE = Retry(max_attempts=3, initial="10ms", max_backoff="10ms", jitter=False)


def suspended(sql: Any) -> Any:
    return until(lambda: sql("select state from tenure.jobs where state = 'waiting'"), is_=[("waiting",)])


def come_true(sql: Any) -> None:
    """All that is planned for later is due now."""
    sql("update tenure.steps set due_at = clock_timestamp() where due_at > clock_timestamp()")
    sql("update tenure.jobs set run_at = clock_timestamp() where position = 0")
    sql("select pg_notify('tenure', 'due')")


async def note(text: str) -> str:
    return text


async def test_a_sleeping_workflow_takes_no_slot_and_continues_where_it_was(app, sql):
    ran = []

    async def work(n: int) -> int:
        ran.append(n)
        return n

    @app.workflow
    async def nap(ctx: WorkflowContext) -> int:
        first = await ctx.step("first", work, 1)
        await ctx.sleep("rest", "1h")
        return first + await ctx.step("second", work, 2)

    async with serving(app, concurrency=1):
        handle = await nap.enqueue()
        await suspended(sql)
        assert sql("select position, claim_id, attempt, run_at - clock_timestamp() > interval '59 minutes' from tenure.jobs") == [
            (0, None, 0, True)
        ]
        assert sql("select name, what, state, due_at is not null from tenure.steps order by number") == [
            ("first", "step", "done", False),
            ("rest", "sleep", "open", True),
        ]
        come_true(sql)
        assert await handle.result("20s") == 3
    status = await handle.status()
    assert (ran, status.attempt, status.fence) == ([1, 2], 1, 2)


async def test_a_workflow_that_is_woken_too_early_sleeps_again_until_the_same_time(app, sql):
    runs = []

    @app.workflow
    async def nap(ctx: WorkflowContext) -> None:
        runs.append(ctx.fence)
        await ctx.sleep("rest", until=datetime.now(UTC) + timedelta(hours=1))

    async with serving(app):
        handle = await nap.enqueue()
        await suspended(sql)
        [(due,)] = sql("select due_at from tenure.steps")
        sql("update tenure.jobs set state = 'pending', position = nextval('tenure.job_position')")
        sql("select pg_notify('tenure', 'jobs default')")
        await until(lambda: len(runs), is_=2)
        await suspended(sql)
        assert sql("select due_at, (select run_at from tenure.jobs) from tenure.steps") == [(due, due)]
        await handle.cancel()


async def test_a_short_sleep_stays_in_its_slot(app, sql):
    @app.workflow
    async def nap(ctx: WorkflowContext) -> int:
        await ctx.sleep("a moment", "10ms")
        return ctx.fence

    async with serving(app):
        assert await (await nap.enqueue()).result("20s") == 1
    assert sql("select what, state from tenure.steps") == [("sleep", "done")]


async def test_one_task_sleeps_while_the_others_work_and_the_workflow_wakes_for_the_first(app, sql):
    ran = []

    async def work(n: int) -> int:
        ran.append(n)
        return n

    async def napping(ctx: WorkflowContext, hours: int) -> int:
        await ctx.sleep("nap", f"{hours}h")
        return await ctx.step("work", work, hours)

    @app.workflow
    async def naps(ctx: WorkflowContext) -> list[int]:
        async def busy() -> int:
            for n in range(10, 15):
                await ctx.step("busy", work, n)
            return 0

        return await asyncio.gather(napping(ctx, 5), napping(ctx, 1), busy())

    async with serving(app):
        handle = await naps.enqueue()
        await suspended(sql)
        assert ran == [10, 11, 12, 13, 14]
        assert sql("select run_at - clock_timestamp() between interval '59m' and interval '60m' from tenure.jobs") == [(True,)]
        sql("update tenure.steps set due_at = clock_timestamp() where name = '2/nap'")
        sql("update tenure.jobs set run_at = clock_timestamp()")
        sql("select pg_notify('tenure', 'due')")
        await until(lambda: ran[5:], is_=[1])
        await suspended(sql)
        come_true(sql)
        assert await handle.result("20s") == [5, 1, 0]
    assert ran == [10, 11, 12, 13, 14, 1, 5]


async def test_a_step_waits_for_its_next_try_without_a_slot_and_counts_on(app, sql):
    tries = []

    async def flaky() -> str:
        tries.append(1)
        if len(tries) < 3:
            raise ConnectionError("no answer")
        return "ok"

    @app.workflow
    async def work(ctx: WorkflowContext) -> str:
        return await ctx.step("flaky", flaky, retry=Retry(max_attempts=3, initial="1h", max_backoff="1h", jitter=False))

    async with serving(app):
        handle = await work.enqueue()
        await suspended(sql)
        assert sql("select state, attempts, error like 'ConnectionError: no answer%' from tenure.steps") == [("retry", 1, True)]
        come_true(sql)
        await until(lambda: len(tries), is_=2)
        await suspended(sql)
        assert sql("select state, attempts from tenure.steps") == [("retry", 2)]
        come_true(sql)
        assert await handle.result("20s") == "ok"
    assert sql("select state, attempts from tenure.steps") == [("done", 3)]


async def test_values_and_handled_failures_before_a_sleep_are_stored_with_it(app, sql):
    seen = []

    @app.workflow
    async def nap(ctx: WorkflowContext) -> None:
        seen.append(ctx.now())
        await ctx.sleep("rest", "1h")

    async with serving(app):
        handle = await nap.enqueue()
        await suspended(sql)
        come_true(sql)
        await handle.result("20s")
    assert len(seen) == 2
    assert seen[0] == seen[1]


async def test_a_suspended_workflow_can_be_canceled(app, sql):
    @app.workflow
    async def nap(ctx: WorkflowContext) -> None:
        await ctx.sleep("rest", "1h")

    async with serving(app):
        handle = await nap.enqueue()
        await suspended(sql)
        assert await handle.cancel("not needed")
        with pytest.raises(JobCanceled, match="not needed"):
            await handle.result("20s")


async def test_finally_blocks_run_when_a_workflow_is_suspended_and_their_steps_do_not(app, sql):
    cleaned, ran = [], []

    async def clean() -> None:
        ran.append("clean")

    @app.workflow
    async def nap(ctx: WorkflowContext) -> None:
        try:
            await ctx.sleep("rest", "1h")
        finally:
            cleaned.append(ctx.fence)
            await ctx.step("clean", clean)

    async with serving(app):
        handle = await nap.enqueue()
        await suspended(sql)
        assert (cleaned, ran) == ([1], [])
        come_true(sql)
        await handle.result("20s")
    assert (cleaned, ran) == ([1, 2], ["clean"])


async def test_crashes_before_a_suspension_do_not_count_any_more(app, sql):
    @app.workflow
    async def nap(ctx: WorkflowContext) -> None:
        await ctx.sleep("rest", "1h")

    await nap.enqueue()
    sql("update tenure.jobs set crashes = 1")
    async with serving(app):
        await suspended(sql)
    assert sql("select crashes from tenure.jobs") == [(0,)]


async def test_a_changed_workflow_is_held_before_it_does_anything_new(app, sql, caplog):
    ran = []

    async def work(name: str) -> str:
        ran.append(name)
        return name

    code = ["reserve", "pay"]

    @app.workflow
    async def order(ctx: WorkflowContext) -> str:
        for name in code:
            await ctx.step(name, work, name)
        await ctx.sleep("rest", "1h")
        return "done"

    async with serving(app):
        handle = await order.enqueue()
        await suspended(sql)
        code[:] = ["reserve", "check", "pay"]
        come_true(sql)
        await until(lambda: sql("select system ->> 'held' from tenure.jobs")[0][0])
        status = await handle.status()
        assert ran == ["reserve", "pay"]
        assert status.state == "waiting"
        assert "the code asks for 'check', but the run has recorded 'pay', 'rest' instead" in (status.error or "")
        assert "workflow is held" in caplog.text
        assert sql("select position from tenure.jobs") == [(-2,)]


async def test_a_workflow_that_returns_without_a_recorded_step_is_held(app, sql):
    code = ["reserve", "pay"]

    @app.workflow
    async def order(ctx: WorkflowContext) -> str:
        for name in code:
            await ctx.step(name, note, name)
        if len(code) == 2:
            await ctx.sleep("rest", "1h")
        return "done"

    async with serving(app):
        await order.enqueue()
        await suspended(sql)
        code.pop()
        come_true(sql)
        [(held,)] = await until(lambda: sql("select system ->> 'held' from tenure.jobs where system ? 'held'"))
    assert "the code returned without 'pay', 'rest', which the run has recorded" in held


async def test_a_step_of_another_sort_under_the_same_name_is_held(app, sql):
    sorts = ["sleep"]

    @app.workflow
    async def nap(ctx: WorkflowContext) -> None:
        if sorts == ["sleep"]:
            await ctx.sleep("rest", "1h")
        else:
            await ctx.step("rest", note, "x")

    async with serving(app):
        await nap.enqueue()
        await suspended(sql)
        sorts[:] = ["step"]
        come_true(sql)
        [(held,)] = await until(lambda: sql("select system ->> 'held' from tenure.jobs where system ? 'held'"))
    assert held.startswith("the run has recorded 'rest' as a sleep, but the code asks for a step of this name")


async def test_a_sleep_takes_a_duration_or_a_time(app):
    errors = []

    @app.workflow
    async def nap(ctx: WorkflowContext) -> None:
        for given in ({}, {"duration": "1h", "until": datetime.now(UTC)}, {"until": datetime(2030, 1, 1)}):  # noqa: DTZ001
            try:
                await ctx.sleep("rest", **given)
            except ConfigError as error:
                errors.append(str(error))

    async with serving(app):
        await (await nap.enqueue()).result("20s")
    assert len(errors) == 3
    assert "either a duration" in errors[0]
    assert "time zone" in errors[2]
