"""The workflows of a campaign. Each step makes a value that no other has, and is given the value of the step before it. Steps
write what they made, and workflows what they saw, so the checker can tell whether all runs of a workflow had the same past.

All kinds begin with `workflow`. Clients request all of them except `workflow_child`.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Awaitable, Coroutine
from functools import partial
from typing import Any
from uuid import uuid4

from tenure import Cancel, Context, Fail, JobFailed, Retry, StepFailed, WaitTimeout, WorkflowContext
from tenure.chaos.handler_files import append_line, campaign_time
from tenure.chaos.jobs import QUICK_RETRY, RunOutput, app, recorded
from tenure.chaos.ledger import ValueLine

EVENT = "campaign_event"
EVENT_TIMEOUT = 20.0
"""Seconds. Clients send the event much earlier, unless they end before."""

PATIENT_RETRY = Retry(max_attempts=10, backoff="exponential", initial="50ms", max_backoff="1s")
SUSPENDED_RETRY = Retry(max_attempts=10, backoff="fixed", initial="2500ms", jitter=False)
"""Its pauses are too long to be spent in a slot."""

DURABLE_SLEEP = 1.2
"""Seconds: shorter sleeps are spent in the slot."""


class WorkflowOutput(RunOutput):
    steps: int
    """How many steps with a value the workflow has recorded."""
    last: str
    """The value of the last one."""


class ValueTrail:
    """The steps of one run of a workflow, one after the other."""

    def __init__(self, ctx: WorkflowContext, made_by: RunOutput) -> None:
        self._ctx = ctx
        self._made_by = made_by
        self._step = self._value = ""
        self._steps = 0

    async def step(self, name: str, seconds: float = 0.0, *, branch: str = "") -> None:
        """`branch`: with which the recorded name begins, in a task of its own."""
        key = branch + name
        await self.follow(key, self._ctx.step(name, self._make_slowly, key, seconds, self._step, self._value))

    async def follow(self, key: str, step: Coroutine[Any, Any, str]) -> None:
        """A step of any sort that makes its value with `make`."""
        value = await step
        self.saw(key, value)
        self._step, self._value = key, value
        self._steps += 1

    def saw(self, key: str, value: str) -> None:
        """Call this when the value is stored: until then, another run may see another one."""
        self._write("saw", key, value)

    def make(self, key: str, needs: str = "", given: str = "") -> str:
        """A value that no other step has. Written down before it is recorded."""
        value = f"{self._ctx.fence} {self._ctx.worker_id} {uuid4().hex[:12]}"
        self._write("ran", key, value, needs, given)
        return value

    async def _make_slowly(self, key: str, seconds: float, needs: str, given: str) -> str:
        await asyncio.sleep(seconds)
        return self.make(key, needs, given)

    async def book(self, connection: Any, n: int) -> str:
        """A row of the user's own, in the transaction that stores the step."""
        row = [n, self._ctx.job_id, self._ctx.fence]
        await connection.execute("insert into chaos.effects (relation, n, job, fence) values ('bookings', %s, %s, %s)", row)
        return self.make("book")

    def output(self) -> WorkflowOutput:
        return WorkflowOutput(**self._made_by, steps=self._steps, last=self._value)

    def _write(self, what: str, key: str, value: str, needs: str = "", given: str = "") -> None:
        ctx = self._ctx
        at, job, worker = campaign_time(), str(ctx.job_id), str(ctx.worker_id)
        append_line("values", ValueLine(what, at, job, ctx.fence, worker, key, value, needs, given))


@app.workflow(retry=QUICK_RETRY)
async def workflow_sequence(ctx: WorkflowContext, n: int, steps: int) -> WorkflowOutput:
    with recorded(ctx, n) as made_by:
        trail = ValueTrail(ctx, made_by)
        for number in range(steps):
            await trail.step(f"step {number}", seconds=0.02 if number % 8 == 7 else 0.0)
        return trail.output()


@app.workflow(retry=QUICK_RETRY)
async def workflow_waiting(ctx: WorkflowContext, n: int) -> WorkflowOutput:
    """Sleeps, waits for an event of a client, and writes a row in the transaction of a step."""
    with recorded(ctx, n) as made_by:
        trail = ValueTrail(ctx, made_by)
        began = ctx.now().isoformat()
        await trail.step("before")
        trail.saw("now", began)
        await ctx.sleep("sleep", DURABLE_SLEEP)
        try:
            event = await ctx.wait_for(EVENT, key=n, timeout=EVENT_TIMEOUT, type=str)
        except WaitTimeout:
            event = ""
        await trail.follow("book", ctx.transaction("book", trail.book, n, retry=PATIENT_RETRY))
        trail.saw(EVENT, event)
        await ctx.sleep("nap", 0.05)
        await trail.step("after")
        return trail.output()


@app.workflow(retry=QUICK_RETRY)
async def workflow_parent(ctx: WorkflowContext, n: int, children: int) -> WorkflowOutput:
    """Waits for one child, then for several at once, and then works in several tasks."""
    with recorded(ctx, n) as made_by:
        trail = ValueTrail(ctx, made_by)
        started = await ctx.start(workflow_child, n)
        await trail.step("before")
        joined = await _outcome(started.join())
        called = await _outcome(ctx.gather(*(ctx.call(workflow_child, n) for _ in range(children))))
        # Tasks are numbered in the order in which they are started: the calls were the first ones.
        await ctx.gather(*(trail.step("part", 0.01 * task, branch=f"{children + task}/") for task in (1, 2, 3)))
        await trail.step("after")
        trail.saw("joined", joined)
        trail.saw("called", called)
        return trail.output()


async def _outcome(children: Awaitable[Any]) -> str:
    try:
        return json.dumps(await children, sort_keys=True)
    except JobFailed as error:  # it was quarantined, because its workers crashed several times
        return error.state


@app.job(retry=QUICK_RETRY)
async def workflow_child(ctx: Context, of: int) -> RunOutput:
    with recorded(ctx, None) as output:
        await asyncio.sleep(of % 5 / 100)
        return output


@app.workflow(retry=QUICK_RETRY)
async def workflow_flaky(ctx: WorkflowContext, n: int, failures: int) -> WorkflowOutput:
    """Its steps fail: one is tried again at once, one after a pause without a slot, one fails for good, and so do some runs."""
    with recorded(ctx, n) as made_by:
        trail = ValueTrail(ctx, made_by)
        await trail.step("before")
        await trail.follow("again", ctx.step("again", partial(_make_or_fail, trail, "again"), retry=PATIENT_RETRY))
        if failures > 1:
            await trail.follow("later", ctx.step("later", partial(_make_or_fail, trail, "later"), retry=SUSPENDED_RETRY))
        try:
            await ctx.step("failing", _fail)
        except StepFailed:
            await trail.step("after the failure")
        if ctx.attempt <= failures:
            raise RuntimeError(f"attempt {ctx.attempt} of {n}")
        return trail.output()


def _make_or_fail(trail: ValueTrail, key: str) -> str:
    """A plain function: it runs in a thread."""
    if random.random() < 0.5:  # noqa: S311
        raise ConnectionError("as planned")
    return trail.make(key)


async def _fail() -> None:
    raise ValueError("as planned")


@app.workflow(retry=QUICK_RETRY)
async def workflow_undone(ctx: WorkflowContext, n: int, how: str) -> WorkflowOutput:
    """Registers what undoes it, and fails in several ways."""
    with recorded(ctx, n) as made_by:
        trail = ValueTrail(ctx, made_by)
        await ctx.on_rollback(undone, trail, "(undo) undo undone")
        await trail.step("first")
        await ctx.on_rollback(undone, trail, "(undo) undo undone#2")
        await trail.follow("book", ctx.transaction("book", trail.book, n, retry=PATIENT_RETRY))
        await trail.step("second")
        if how == "slowly":
            await ctx.sleep("sleep", DURABLE_SLEEP)
        _end(how)
        return trail.output()


async def undone(trail: ValueTrail, name: str) -> str:
    return trail.make(name)


def _end(how: str) -> None:
    if how == "error":
        raise RuntimeError("as planned")
    if how == "canceled":
        raise Cancel("as planned")
    if how != "completed":
        raise Fail("as planned")


WAITING_KIND = workflow_waiting.name
"""The kind whose event the clients send."""

UNDONE_WAYS = ("fail", "error", "canceled", "slowly", "completed")
