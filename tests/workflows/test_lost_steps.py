"""A failover to a standby that lagged behind: a run still holds its claim, but steps that it has stored are gone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from tenure import JobFailed, Retry, WaitTimeout, WorkflowContext
from tests.waiting import until
from tests.worker.serving import serving


async def book(connection: Any) -> None:
    await connection.execute("select 1")


async def value(ctx: WorkflowContext, standby: Standby) -> None:
    ctx.now()
    await ctx.step("after", standby.do, "after")


async def start_and_join(ctx: WorkflowContext, child: Any) -> None:
    await (await ctx.start(child)).join()


NEXT: dict[str, Callable[[WorkflowContext, Standby, Any], Awaitable[Any]]] = {
    "step": lambda ctx, standby, _: ctx.step("next", standby.do, "next"),
    "gather": lambda ctx, standby, _: ctx.gather(ctx.step("next", standby.do, "next"), ctx.step("more", standby.do, "more")),
    "short sleep": lambda ctx, _, __: ctx.sleep("next", "10ms"),
    "sleep": lambda ctx, _, __: ctx.sleep("next", "1100ms"),
    "event": lambda ctx, _, __: ctx.wait_for("next", timeout="1100ms"),
    "call": lambda ctx, _, child: ctx.call(child),
    "start": lambda ctx, _, child: start_and_join(ctx, child),
    "on_rollback": lambda ctx, standby, _: ctx.on_rollback(standby.do, "undo"),
    "transaction": lambda ctx, _, __: ctx.transaction("next", book),
    "value": lambda ctx, standby, _: value(ctx, standby),
}
"""What a run does after the failover."""


class Standby:
    """Forgets the last steps of a workflow, once."""

    def __init__(self, sql: Any) -> None:
        self._sql = sql
        self.ran: list[str] = []
        self.lagged = False

    async def do(self, what: str) -> str:
        self.ran.append(what)
        return f"{what} {self.ran.count(what)}"

    def fail_over(self, *names: str) -> None:
        if not self.lagged:
            self.lagged = True
            assert self._sql("delete from tenure.steps where name = any (%s) returning name", list(names)) != []


@pytest.fixture
def standby(sql: Any) -> Standby:
    return Standby(sql)


@pytest.mark.parametrize("way", NEXT)
async def test_a_run_that_lost_steps_begins_again_with_what_is_recorded(app, standby, sql, way):
    @app.job
    async def child() -> str:
        return "child"

    @app.workflow(retry=Retry(max_attempts=1))
    async def flow(ctx: WorkflowContext) -> list[str]:
        seen = [await ctx.step(what, standby.do, what) for what in ("first", "second", "third")]
        standby.fail_over("second", "third")
        with suppress(WaitTimeout):
            await NEXT[way](ctx, standby, child)
        return [*seen, await ctx.step("last", standby.do, "last")]

    async with serving(app):
        handle = await flow.enqueue()
        # The steps that are gone were run again, and those that followed them were not recorded without them.
        assert await handle.result("30s") == ["first 1", "second 2", "third 2", "last 1"]
        assert (await handle.status()).attempt == 1
    recorded = sql("select name, output #>> '{}' from tenure.steps where what = 'step' order by number")
    assert recorded[:3] == [("first", "first 1"), ("second", "second 2"), ("third", "third 2")]
    assert len(sql("select id from tenure.all_jobs where kind = 'child'")) == (way in ("call", "start"))


async def test_code_that_handles_every_error_cannot_continue_without_its_steps(app, standby):
    @app.workflow
    async def flow(ctx: WorkflowContext) -> list[str]:
        seen = [await ctx.step("first", standby.do, "first")]
        standby.fail_over("first")
        while True:
            try:
                return [*seen, await ctx.step("next", standby.do, "next")]
            except Exception:
                seen.append("handled")

    async with serving(app):
        assert await (await flow.enqueue()).result("30s") == ["first 2", "next 2"]


async def test_a_rollback_that_lost_the_last_step_begins_again(app, standby, sql):
    async def undo() -> None:
        await standby.do("undo")

    @app.workflow(retry=Retry(max_attempts=1))
    async def flow(ctx: WorkflowContext) -> None:
        await ctx.on_rollback(undo)
        await ctx.step("first", standby.do, "first")
        standby.fail_over("first")
        raise RuntimeError("broken")

    async with serving(app):
        with pytest.raises(JobFailed, match="broken"):
            await (await flow.enqueue()).result("30s")
    assert standby.ran == ["first", "first", "undo"]
    assert sql("select name from tenure.steps order by number") == [
        ("undo undo",),
        ("first",),
        ("(rollback)",),
        ("(undo) undo undo",),
    ]


async def test_the_loss_is_logged(app, standby, caplog):
    @app.workflow
    async def flow(ctx: WorkflowContext) -> None:
        await ctx.step("first", standby.do, "first")
        standby.fail_over("first")
        await ctx.step("next", standby.do, "next")

    async with serving(app):
        handle = await flow.enqueue()
        await handle.result("30s")
        await until(lambda: any("workflow restarts" in record.getMessage() for record in caplog.records))
    [record] = [record for record in caplog.records if "workflow restarts" in record.getMessage()]
    assert record.job_id == str(handle.id)


async def test_steps_that_several_statements_have_stored_at_once_are_all_looked_up(app, standby):
    """Tasks have stored them at the same time, so the one that was confirmed first may have been committed last."""

    @app.workflow
    async def flow(ctx: WorkflowContext) -> list[str]:
        seen = [await ctx.step(what, standby.do, what) for what in ("first", "second")]
        if not standby.lagged:
            assert ctx._run.stored_steps == ("second",)
            ctx._run.stored_steps = ("first", "second")
        standby.fail_over("first")
        return [*seen, await ctx.step("next", standby.do, "next")]

    async with serving(app):
        handle = await flow.enqueue()
        # "second" was recorded without "first", by this test: that does not fit any more.
        await until(lambda: standby.ran.count("next") == 1)
        await until(lambda: why_held(handle), within=30)


async def test_one_of_the_steps_that_were_stored_together_is_looked_up(app, standby):
    @app.job
    async def child(n: int) -> int:
        return n

    @app.workflow
    async def flow(ctx: WorkflowContext) -> int:
        await ctx.gather(*(ctx.step("wide", standby.do, f"wide {n}") for n in range(20)), ctx.start(child, 1))
        await ctx.step("next", standby.do, "next")
        return len(ctx._run.stored_steps)

    async with serving(app):
        assert await (await flow.enqueue()).result("30s") == 1


async def why_held(handle: Any) -> bool:
    status = await handle.status()
    return status.state == "waiting" and "recorded 'second' instead" in (status.error or "")
