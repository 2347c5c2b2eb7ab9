"""Events of workflows in the process that runs them."""

from __future__ import annotations

import pytest

from tenure import (
    Fail,
    JobFailed,
    Retry,
    StepEnded,
    Tenure,
    WaitBegan,
    WaitEnded,
    WaitTimeout,
    WorkflowContext,
    WorkflowSuspended,
)
from tenure.model.event_bus import Events
from tests.waiting import until
from tests.worker.serving import serving
from tests.workflows.test_sleep import come_true, suspended


async def test_every_step_and_every_wait_is_an_event(app, sql):
    seen = []
    tries = []

    @app.on(StepEnded, WorkflowSuspended)
    def note(event):
        seen.append(event)

    async def flaky() -> str:
        tries.append(1)
        if len(tries) == 1:
            raise ConnectionError("no answer")
        return "ok"

    @app.workflow
    async def work(ctx: WorkflowContext) -> str:
        result = await ctx.step("flaky", flaky, retry=Retry(2, initial="10ms", jitter=False))
        await ctx.sleep("rest", "1h")
        return result

    async with serving(app):
        handle = await work.enqueue()
        await suspended(sql)
        come_true(sql)
        await handle.result("20s")
    assert [(e.step, e.state, e.attempts, e.error) for e in seen if isinstance(e, StepEnded)] == [
        ("flaky", "retry", 1, "no answer"),
        ("flaky", "done", 2, None),
    ]
    assert [(e.job_id, e.steps, e.held) for e in seen if isinstance(e, WorkflowSuspended)] == [(handle.id, ("rest",), None)]


def waits_of(app: Tenure) -> list[WaitBegan | WaitEnded]:
    seen: list[WaitBegan | WaitEnded] = []
    app.on(WaitBegan, WaitEnded)(seen.append)
    return seen


def brief(seen: list[WaitBegan | WaitEnded]) -> list[tuple[str, str, str]]:
    """In the order of the steps: those of several tasks overtake each other."""
    return sorted((e.step, e.what, e.state if isinstance(e, WaitEnded) else "began") for e in seen)


async def test_every_sleep_begins_and_ends_once_over_all_runs_of_the_workflow(app, sql):
    seen = waits_of(app)

    @app.workflow
    async def work(ctx: WorkflowContext) -> int:
        await ctx.sleep("blink", "1ms")
        await ctx.sleep("rest", "1h")
        await ctx.gather(ctx.sleep("left", "2h"), ctx.sleep("right", "3h"))
        await ctx.step("last", int)
        await ctx.wait_for("go")
        return 1

    async with serving(app):
        handle = await work.enqueue()
        await suspended(sql)
        assert [(e.step, e.seconds) for e in seen if isinstance(e, WaitBegan)] == [("blink", 0.001), ("rest", 3600.0)]
        come_true(sql)
        await until(lambda: sql("select count(*) from tenure.steps where due_at > now() and state = 'open'"), is_=[(2,)])
        come_true(sql)
        await until(lambda: sql("select count(*) from tenure.waits"), is_=[(1,)])
        await app.emit("go")
        await handle.result("20s")
    waits = [("blink", "sleep"), ("go", "wait"), ("left", "sleep"), ("rest", "sleep"), ("right", "sleep")]
    assert brief(seen) == [(*wait, state) for wait in waits for state in ("began", "done")]
    assert {(e.job_id, e.kind) for e in seen} == {(handle.id, "work")}
    # The end of a sleep is stored with the step that follows it.
    assert sql("select distinct state, ended_at is not null from tenure.steps where what = 'sleep'") == [("done", True)]


async def test_waits_for_events_signals_and_children_begin_and_end(app, sql):
    seen = waits_of(app)

    @app.job
    async def child(fails: bool) -> str | Fail:
        return Fail("no") if fails else "yes"

    @app.workflow
    async def work(ctx: WorkflowContext) -> str:
        started = await ctx.start(child, True)
        await ctx.gather(ctx.wait_for("paid"), ctx.wait_for_signal("go", timeout="1h"), ctx.call(child, False))
        with pytest.raises(JobFailed, match="no"):
            await started.join()
        with pytest.raises(WaitTimeout):
            await ctx.wait_for("never", timeout="1h")
        return "ok"

    async with serving(app):
        handle = await work.enqueue()
        await until(lambda: sql("select count(*) from tenure.waits"), is_=[(2,)])
        await app.emit("paid")
        await handle.signal("go")
        await until(lambda: sql("select count(*) from tenure.waits where event = 'never'"), is_=[(1,)])
        come_true(sql)
        assert await handle.result("20s") == "ok"
    waits = [("child", "call", "done"), ("go", "event", "done"), ("join start child", "call", "failed")]
    waits += [("never", "wait", "failed"), ("paid", "wait", "done")]
    assert brief(seen) == [one for step, what, end in waits for one in ((step, what, "began"), (step, what, end))]
    began = {e.step: e for e in seen if isinstance(e, WaitBegan)}
    assert (began["paid"].event, began["go"].event, began["go"].seconds) == ("paid", "go", 3600.0)
    assert sql("select id from tenure.history where kind = 'child' and state = 'completed'") == [(began["child"].child,)]
    errors = {e.step: e.error for e in seen if isinstance(e, WaitEnded)}
    assert (errors["join start child"], errors["never"], errors["paid"]) == ("no", "no event in time", None)


async def test_no_event_is_made_if_no_one_listens(app, monkeypatch):
    @app.workflow
    async def work(ctx: WorkflowContext) -> None:
        await app.emit("paid")
        await ctx.step("one", int)
        await ctx.sleep("blink", "1ms")

    emitted: list[object] = []
    monkeypatch.setattr(Events, "emit", lambda _, event: emitted.append(event))
    async with serving(app):
        await (await work.enqueue()).result("20s")
    assert not [event for event in emitted if isinstance(event, StepEnded | WaitBegan | WaitEnded)]
