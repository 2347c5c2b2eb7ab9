"""Steps that run in another process."""

from __future__ import annotations

import os
from datetime import date
from pathlib import Path

import pytest

from tenure import ConfigError, Retry, StepFailed, WorkflowContext
from tests.waiting import until
from tests.worker.serving import serving
from tests.workflows import process_steps

AT_ONCE = Retry(max_attempts=3, initial="10ms", max_backoff="10ms", jitter=False)


def runs(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").exists() and Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


async def test_a_function_is_called_in_another_process_that_is_used_again(app):
    @app.workflow
    async def work(ctx: WorkflowContext) -> list[int]:
        one = await ctx.step("one", process_steps.where, 1, run_in="process")
        two = await ctx.step("two", process_steps.where, 2, run_in="process")
        _, three = await process_steps.decorated(3)
        return [one, two, three]

    async with serving(app):
        pids = await (await work.enqueue()).result("30s")
    assert len(set(pids)) == 1
    assert pids[0] != os.getpid()


async def test_results_are_typed_and_coroutine_functions_run_there_too(app):
    @app.workflow
    async def work(ctx: WorkflowContext) -> str:
        day = await ctx.step("day", process_steps.next_day, date(2030, 1, 31), run_in="process")
        return day.isoformat()

    async with serving(app):
        assert await (await work.enqueue()).result("30s") == "2030-02-01"


async def test_what_it_raises_is_the_failure_of_the_step(app):
    @app.workflow
    async def work(ctx: WorkflowContext) -> str:
        try:
            await ctx.step("fail", process_steps.fail, "no", run_in="process")
        except StepFailed as error:
            return f"{error.error_type}: {error.error_message}"
        return ""

    async with serving(app):
        assert await (await work.enqueue()).result("30s") == "ValueError: no"


async def test_a_process_that_dies_is_a_failed_try(app, tmp_path):
    @app.workflow
    async def work(ctx: WorkflowContext) -> str:
        survived = await ctx.step("once", process_steps.die_once, str(tmp_path), retry=AT_ONCE, run_in="process")
        try:
            await ctx.step("always", process_steps.die, run_in="process")
        except StepFailed as error:
            return f"{survived}, {error.error_message}"
        return ""

    async with serving(app):
        handle = await work.enqueue()
        assert "survived" in (told := await handle.result("30s"))
        assert "SIGKILL" in told
        assert (await handle.status()).crashes == 0


async def test_a_step_that_takes_too_long_is_killed(app, tmp_path):
    @app.workflow
    async def work(ctx: WorkflowContext) -> str:
        await ctx.step("start", process_steps.where, 1, run_in="process")  # a process that is started counts into the timeout
        try:
            await ctx.step("hang", process_steps.hang, str(tmp_path), timeout="3s", run_in="process")
        except StepFailed as error:
            return error.error_type
        return ""

    async with serving(app):
        assert await (await work.enqueue()).result("60s") == "TimeoutError"
        pid = int((tmp_path / "pid").read_text())
        await until(lambda: not runs(pid))


async def test_a_function_that_no_other_process_can_find_is_refused(app):
    async def inner() -> None: ...

    with pytest.raises(ConfigError, match="define it with `def` at the top level"):
        app.step(run_in="process")(inner)
    with pytest.raises(ConfigError, match="can only run on the event loop, or in a process"):
        app.step(run_in="thread")(inner)
    with pytest.raises(ConfigError, match="run_in is 'elsewhere'"):
        app.step(run_in="elsewhere")(inner)


async def test_arguments_that_cannot_be_sent_fail_the_step(app):
    @app.workflow
    async def work(ctx: WorkflowContext) -> str:
        try:
            await ctx.step("where", process_steps.where, lambda: 1, run_in="process")  # type: ignore[arg-type]
        except StepFailed as error:
            return error.error_message
        return ""

    async with serving(app):
        assert "cannot be sent to another process" in await (await work.enqueue()).result("30s")
