"""Names of steps that look like those that Tenure makes: each step still has its own result."""

from __future__ import annotations

from typing import Any

import pytest

from tenure import Retry, StepFailed, WorkflowContext
from tenure.flow.branches import Branch, path_of
from tests.worker.serving import serving

AT_ONCE = Retry(max_attempts=2, initial="10ms", max_backoff="10ms", jitter=False)
NAMES = ["a", "a#2", "a#2#2", "a#1", "1/a", "0/a", "0/1/a", "a/b", "#2", "1/", "1/2/a", "2/a#2", "1/#2"]


def keys_of(path: str) -> dict[str, tuple[str, str, int]]:
    branch = Branch(path, None, set())
    return {branch.key(name): (path, name, use) for use in (1, 2, 3) for name in NAMES}


def test_no_two_steps_have_the_same_key():
    paths = ["", "1/", "2/", "1/1/", "1/2/"]
    found = [key for path in paths for key in keys_of(path)]
    assert len(found) == len(set(found)) == len(paths) * len(NAMES) * 3
    assert all(path_of(key) == path for path in paths for key in keys_of(path))


def test_ordinary_names_are_kept_as_they_are():
    branch = Branch("1/", None, set())
    assert [branch.key("pay order #"), branch.key("book/hotel"), branch.key("book/hotel")] == [
        "1/pay order #", "1/book/hotel", "1/book/hotel#2",
    ]  # fmt: skip


async def test_a_replay_returns_to_each_step_its_own_result(app):
    async def echo(value: str) -> str:
        return value

    async def task(ctx: WorkflowContext, value: str) -> str:
        return await ctx.step("a", echo, value)

    @app.workflow
    async def flow(ctx: WorkflowContext) -> list[Any]:
        seen: list[Any] = [await ctx.step("a#2", echo, "literal"), await ctx.step("1/a", echo, "slash")]
        seen += [await ctx.step("a", echo, "first"), await ctx.step("a", echo, "second")]
        seen += await ctx.gather(task(ctx, "in task 1"), task(ctx, "in task 2"))
        await ctx.sleep("rest", "1100ms")
        return seen

    async with serving(app):
        result = await (await flow.enqueue()).result("30s")
    assert result == ["literal", "slash", "first", "second", "in task 1", "in task 2"]


async def test_a_failure_is_kept_if_the_workflow_went_on_after_it_also_if_its_name_has_a_slash(app):
    tries: list[str] = []

    async def breaks_once() -> None:
        tries.append("a/b")
        if len(tries) == 1:
            raise ConnectionError("broken")

    async def note() -> None: ...

    @app.workflow(retry=AT_ONCE)
    async def flow(ctx: WorkflowContext) -> None:
        try:
            await ctx.step("a/b", breaks_once)
        except StepFailed:
            await ctx.step("note the failure", note)
            raise

    async with serving(app):
        handle = await flow.enqueue()
        with pytest.raises(Exception, match="broken"):
            await handle.result("30s")
        assert (await handle.status()).state == "dead_letter"
    assert tries == ["a/b"]
