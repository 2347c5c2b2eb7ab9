"""Workflows in tests: sleeps are skipped or traveled through, events and signals are sent."""

from __future__ import annotations

import pytest

from tenure import ConfigError, Tenure, WorkflowContext
from tenure.testing import DrainTimeout, bound, crash_after, drain, run_inline, temporary_database, travel

app = Tenure(name="toolkit-workflows")
STEPS: list[str] = []


def note(text: str) -> str:
    STEPS.append(text)
    return text


@app.workflow
async def onboard(ctx: WorkflowContext, user: str) -> str:
    await ctx.step("welcome", note, f"welcome {user}")
    await ctx.sleep("a week", "7d")
    await ctx.step("remind", note, f"remind {user}")
    await ctx.sleep("another week", "7d")
    return "onboarded"


@app.workflow
async def order(ctx: WorkflowContext, number: str) -> str:
    paid = await ctx.wait_for("paid", key=number, timeout="2d")
    return f"paid by {paid}"


@app.workflow
async def restless(ctx: WorkflowContext) -> None:
    for day in range(100_000):
        await ctx.sleep(f"day {day}", "1d")


@pytest.fixture
def tested(server_dsn):
    STEPS.clear()
    with temporary_database(server_dsn) as dsn, bound(app, dsn):
        yield app


async def test_sleeps_are_skipped(tested):
    handle = await onboard.enqueue("ann")
    *_, last = await drain(app, skip_sleeps=True)
    assert (last.state, last.output) == ("completed", "onboarded")
    assert await handle.result() == "onboarded"
    assert STEPS == ["welcome ann", "remind ann"]


async def test_or_traveled_through(tested):
    await onboard.enqueue("ann")
    await drain(app)
    travel(app, days=6)
    await drain(app)
    assert STEPS == ["welcome ann"]
    travel(app, days=1, seconds=1)
    await drain(app)
    assert STEPS == ["welcome ann", "remind ann"]


async def test_an_event_is_sent(tested):
    handle = await order.enqueue("o-17")
    await drain(app)
    assert (await handle.status()).state == "waiting"
    await app.emit("paid", "ann", key="o-17")
    *_, last = await drain(app)
    assert last.output == "paid by ann"


async def test_no_event_comes(tested):
    handle = await order.enqueue("o-17")
    await drain(app)
    travel(app, days=3)
    await drain(app)
    status = await handle.status()
    assert status.state == "dead_letter"
    assert status.error_type == "WaitTimeout"


async def test_a_crash_does_not_repeat_steps(tested):
    await onboard.enqueue("ann")
    with crash_after(onboard):
        await drain(app, skip_sleeps=True)
    assert STEPS == ["welcome ann", "remind ann"]


async def test_not_inline():
    with pytest.raises(ConfigError, match=r"run it with drain\(app, skip_sleeps=True\)"), run_inline(app):
        await onboard.enqueue("ann")


async def test_a_workflow_that_sleeps_for_ever_is_reported(tested):
    await restless.enqueue()
    with pytest.raises(DrainTimeout, match="restless"):
        await drain(app, skip_sleeps=True, timeout="1s")
