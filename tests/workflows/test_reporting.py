"""Events of workflows in the process that runs them."""

from __future__ import annotations

from tenure import Retry, StepEnded, WorkflowContext, WorkflowSuspended
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
