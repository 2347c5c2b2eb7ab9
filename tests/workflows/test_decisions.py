"""What a workflow has decided is stored before a step acts because of it: no later run can decide differently."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from tenure import JobFailed, Retry, StepFailed, WaitTimeout, WorkflowContext
from tenure.flow.journal import Journal
from tenure.model.suspensions import OpenStep
from tests.waiting import until
from tests.worker.serving import serving
from tests.workflows.test_sleep import come_true, suspended

AT_ONCE = Retry(max_attempts=3, initial="10ms", max_backoff="10ms", jitter=False)


@pytest.fixture
def act(sql):
    """A step that acts outside: notes what is stored when it begins."""
    stored: list[dict[str, str]] = []

    async def act(*_: Any) -> None:
        stored.append(dict(sql("select name, state from tenure.steps where what <> 'status'")))

    act.stored = stored  # type: ignore[attr-defined]
    return act


async def test_a_value_is_stored_before_the_step_that_gets_it(app, act):
    @app.workflow
    async def charge(ctx: WorkflowContext) -> None:
        ctx.set_status("about to charge")
        await ctx.step("charge", act, ctx.now())

    async with serving(app):
        await (await charge.enqueue()).result("20s")
    assert act.stored == [{"now": "done"}]


async def test_the_way_of_changed_code_is_stored_before_a_step_on_it(app, act):
    @app.workflow
    async def order(ctx: WorkflowContext) -> None:
        if ctx.patched("check first"):
            await ctx.step("check", act)

    async with serving(app):
        await (await order.enqueue()).result("20s")
    assert act.stored == [{"patch check first": "done"}]


async def test_a_failure_that_is_handled_is_stored_before_the_step_that_follows(app, act):
    async def fail() -> None:
        raise ValueError("no stock")

    @app.workflow
    async def order(ctx: WorkflowContext) -> None:
        try:
            await ctx.step("reserve", fail)
        except StepFailed:
            await ctx.step("apologize", act)

    async with serving(app):
        await (await order.enqueue()).result("20s")
    assert act.stored == [{"reserve": "failed"}]


async def test_the_failure_of_a_child_is_stored_before_the_step_that_follows(app, act):
    @app.job(max_attempts=1)
    async def pay() -> None:
        raise ValueError("no money")

    @app.workflow
    async def order(ctx: WorkflowContext) -> None:
        try:
            await ctx.call(pay)
        except JobFailed:
            await ctx.step("apologize", act)

    async with serving(app):
        await (await order.enqueue()).result("20s")
    assert act.stored == [{"pay": "done"}]


async def test_an_event_that_comes_after_the_step_for_its_absence_has_acted_changes_nothing(app, sql, act):
    """Also if that attempt of the workflow fails."""
    ways = []

    @app.workflow(retry=AT_ONCE)
    async def order(ctx: WorkflowContext) -> str:
        try:
            await ctx.wait_for("paid", timeout="1h")
        except WaitTimeout:
            ways.append("canceled")
            await ctx.step("cancel", cancel)
        else:
            ways.append("paid")
            await ctx.step("ship", act)
        return ways[-1]

    async def cancel() -> None:
        await act()
        if len(act.stored) == 1:
            await app.emit("paid")
            await until(lambda: sql("select position > 0 from tenure.events"), is_=[(True,)])
            raise ConnectionError("not answered")

    async with serving(app):
        handle = await order.enqueue()
        await suspended(sql)
        come_true(sql)
        assert await handle.result("20s") == "canceled"
    assert ways == ["canceled"] * 2
    assert act.stored == [{"paid": "failed"}] * 2


async def test_a_step_that_failed_stays_failed_once_its_fallback_has_acted(app):
    """Also if the fallback fails and the first failure ends the attempt."""
    called = []

    async def reserve() -> str:
        called.append("reserve")
        raise ConnectionError("no answer")

    async def fall_back() -> str:
        called.append("fall back")
        if called.count("fall back") == 1:
            raise ConnectionError("no answer either")
        return "from elsewhere"

    @app.workflow(retry=AT_ONCE)
    async def order(ctx: WorkflowContext) -> str:
        try:
            return await ctx.step("reserve", reserve)
        except StepFailed as failure:
            try:
                return await ctx.step("fall back", fall_back)
            except StepFailed:
                raise failure from None

    async with serving(app):
        handle = await order.enqueue()
        assert await handle.result("20s") == "from elsewhere"
    assert called == ["reserve", "fall back", "fall back"]


async def test_a_wait_that_ended_an_attempt_is_looked_at_again_by_the_next_one(app, sql):
    """Nothing was done because of it."""

    @app.workflow(retry=Retry(max_attempts=2, initial="1h", max_backoff="1h", jitter=False))
    async def order(ctx: WorkflowContext) -> str:
        return await ctx.wait_for("paid", timeout="1h", type=str)

    async with serving(app):
        handle = await order.enqueue()
        await suspended(sql)
        come_true(sql)
        await until(lambda: sql("select state from tenure.jobs"), is_=[("retry",)])
        await app.emit("paid", "late")
        await until(lambda: sql("select position > 0 from tenure.events"), is_=[(True,)])
        come_true(sql)
        assert await handle.result("20s") == "late"


# Tasks that store at the same time


class Writer:
    """Stores nothing before it is released."""

    def __init__(self) -> None:
        self.released = asyncio.Event()
        self.sent: list[list[str]] = []

    async def record(self, _run: Any, steps: list[str], _last: str) -> None:
        self.sent.append(steps)
        await self.released.wait()


async def turns() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.fixture
async def writer():
    return Writer()


@pytest.fixture
def journal(writer):
    journal = Journal(SimpleNamespace(job_id="j", claim_id="c"), writer)  # type: ignore[arg-type]
    journal.add(OpenStep(number=journal.next_number(), name="1/now", what="value", state="done", output="12:00"))
    return journal


async def test_a_step_waits_for_a_decision_that_another_task_is_storing(journal, writer):
    other = asyncio.create_task(journal.record("2/pack", "step"))
    await turns()
    step = asyncio.create_task(journal.store_decisions("1/charge"))
    await turns()
    assert not step.done()
    writer.released.set()
    await asyncio.gather(step, other)
    assert len(writer.sent) == 1


async def test_a_step_stores_a_decision_itself_if_the_task_that_was_storing_it_is_canceled(journal, writer):
    other = asyncio.create_task(journal.record("2/pack", "step"))
    await turns()
    step = asyncio.create_task(journal.store_decisions("1/charge"))
    await turns()
    other.cancel()
    await turns()
    assert not step.done()
    writer.released.set()
    await step
    assert "1/now" in "".join(writer.sent[1])


async def test_a_status_that_is_not_stored_yet_delays_no_step(writer):
    journal = Journal(SimpleNamespace(job_id="j", claim_id="c"), writer)  # type: ignore[arg-type]
    journal.add(OpenStep(number=0, name="(status)", what="status", output="packing"))
    await journal.store_decisions("pack")
    assert writer.sent == []


async def test_steps_that_follow_each_other_cost_one_statement_each(writer):
    journal = Journal(SimpleNamespace(job_id="j", claim_id="c"), writer)  # type: ignore[arg-type]
    writer.released.set()
    for n in range(5):
        await journal.store_decisions(f"pack#{n}")
        await journal.record(f"pack#{n}", "step")
    assert len(writer.sent) == 5
