"""Random workflow programs: made from a seed, run by a workflow that is interrupted at random, and computed by a model."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tenure import JobFailed, Snooze, StepFailed, Tenure, WaitTimeout, WorkflowContext

KINDS = (
    "step", "step", "step", "thread", "fail", "sleep", "event", "child", "bad child", "value",
    "timed step", "late event", "fallback", "gather",
)  # fmt: skip
MODULUS = 1_000_003


@dataclass
class Op:
    number: int
    kind: str
    interrupted: str = ""
    """before, inside or after: where the first run that comes here ends."""
    branches: list[list[Op]] = field(default_factory=list)


def program(seed: int) -> list[Op]:
    chance = random.Random(seed)
    numbers = iter(range(1, 1000))
    return _ops(chance, numbers, depth=0)


def _ops(chance: random.Random, numbers: Iterator[int], depth: int) -> list[Op]:
    return [_op(chance, numbers, depth) for _ in range(chance.randint(1, 6 if depth == 0 else 3))]


def _op(chance: random.Random, numbers: Iterator[int], depth: int) -> Op:
    kind = chance.choice(KINDS[: -1 if depth == 2 else None])
    op = Op(next(numbers), kind, chance.choice(["before", "inside", "after"]) if chance.random() < 0.15 else "")
    if kind == "gather":
        op.branches = [_ops(chance, numbers, depth + 1) for _ in range(chance.randint(2, 3))]
    return op


def mix(value: int, number: int) -> int:
    return (value * 31 + number) % MODULUS


def model(ops: list[Op], value: int = 1) -> int:
    """What the program computes if nothing ever fails."""
    for op in ops:
        match op.kind:
            case "gather":
                value = mix(sum(model(branch, value) for branch in op.branches), op.number)
            case "sleep" | "value":
                pass
            case _:
                value = mix(value, op.number)
    return value


def every(ops: list[Op]) -> Iterator[Op]:
    for op in ops:
        yield op
        for branch in op.branches:
            yield from every(branch)


class Interpreter:
    """Runs programs as workflows of an app, and notes what happens."""

    def __init__(self, app: Tenure) -> None:
        self.ran: Counter[tuple[int, int]] = Counter()
        """By seed and op: how often its function was called."""
        self.wrong: list[str] = []
        self._app = app
        self._times: dict[tuple[int, int], str] = {}
        self._interrupted: set[tuple[int, int, str]] = set()
        self._returned: set[tuple[int, int]] = set()
        self.workflow = self._define(app)

    def _define(self, app: Tenure) -> Any:
        @app.job(max_attempts=1)
        async def child(seed: int, number: int, value: int) -> int:
            self._note(seed, number)
            if value < 0:
                raise ValueError("a bad child")
            return mix(value, number)

        @app.workflow(max_attempts=1)
        async def run(ctx: WorkflowContext, seed: int) -> int:
            return await self._run(ctx, seed, program(seed), 1)

        self._child = child
        return run

    async def _run(self, ctx: WorkflowContext, seed: int, ops: list[Op], value: int) -> int:
        for op in ops:
            self._interrupt(seed, op, "before")
            value = await self._do(ctx, seed, op, value)
            self._returned.add((seed, op.number))
            self._interrupt(seed, op, "after")
        return value

    async def _do(self, ctx: WorkflowContext, seed: int, op: Op, value: int) -> int:
        name = f"op {op.number}"
        match op.kind:
            case "sleep":
                await ctx.sleep(name, "10ms")
            case "event":
                value = mix(value, await ctx.wait_for("number", key=f"{seed} {op.number}", type=int))
            case "value":
                ctx.now()
            case "gather":
                results = await ctx.gather(*(self._run(ctx, seed, branch, value) for branch in op.branches))
                value = mix(sum(results), op.number)
            case "step" | "thread" | "timed step":
                return await self._step(ctx, seed, op, value)
            case _:
                return await self._handling(ctx, seed, op, value)
        return value

    async def _step(self, ctx: WorkflowContext, seed: int, op: Op, value: int) -> int:
        name = f"op {op.number}"
        match op.kind:
            case "thread":
                return await ctx.step(name, self._compute_plainly, seed, op, value)
            case "timed step":
                return await ctx.step(name, self._compute_at, seed, op, value, ctx.now().isoformat())
            case _:
                return await ctx.step(name, self._compute, seed, op, value)

    async def _handling(self, ctx: WorkflowContext, seed: int, op: Op, value: int) -> int:
        match op.kind:
            case "fail":
                return await self._failing(ctx, seed, op, value)
            case "bad child":
                return await self._bad_child(ctx, seed, op, value)
            case "late event":
                return await self._late_event(ctx, seed, op, value)
            case "fallback":
                return await self._fallback(ctx, seed, op, value)
            case _:
                return await ctx.call(self._child, seed, op.number, value)

    async def _failing(self, ctx: WorkflowContext, seed: int, op: Op, value: int) -> int:
        try:
            await ctx.step(f"op {op.number}", self._fail, seed, op)
        except StepFailed:
            return mix(value, op.number)
        raise AssertionError("a step that fails has returned")

    async def _bad_child(self, ctx: WorkflowContext, seed: int, op: Op, value: int) -> int:
        try:
            await ctx.call(self._child, seed, op.number, -1)
        except JobFailed:
            return mix(value, op.number)
        raise AssertionError("a child that fails has returned")

    async def _late_event(self, ctx: WorkflowContext, seed: int, op: Op, value: int) -> int:
        """The event comes when the step for its absence has begun: too late."""
        try:
            await ctx.wait_for("late", key=f"{seed} {op.number}", timeout="10ms")
        except WaitTimeout:
            return await ctx.step(f"op {op.number}", self._emit_and_compute, seed, op, value)
        return -1

    async def _fallback(self, ctx: WorkflowContext, seed: int, op: Op, value: int) -> int:
        """The step would succeed as soon as its fallback has begun: too late."""
        try:
            await ctx.step(f"first {op.number}", self._fail_at_first, seed, op)
        except StepFailed:
            return await ctx.step(f"op {op.number}", self._compute, seed, op, value)
        return -1

    async def _compute_at(self, seed: int, op: Op, value: int, time: str) -> int:
        if self._times.setdefault((seed, op.number), time) != time:
            self.wrong.append(f"seed {seed}: op {op.number} ran again at another time")
        return await self._compute(seed, op, value)

    async def _emit_and_compute(self, seed: int, op: Op, value: int) -> int:
        await self._app.emit("late", key=f"{seed} {op.number}")
        return await self._compute(seed, op, value)

    async def _fail_at_first(self, seed: int, op: Op) -> None:
        if not self.ran[seed, op.number]:
            raise ConnectionError("as planned")

    async def _compute(self, seed: int, op: Op, value: int) -> int:
        self._note(seed, op.number)
        await asyncio.sleep(0)
        self._interrupt(seed, op, "inside")
        return mix(value, op.number)

    def _compute_plainly(self, seed: int, op: Op, value: int) -> int:
        self._note(seed, op.number)
        return mix(value, op.number)

    async def _fail(self, seed: int, op: Op) -> None:
        self._note(seed, op.number)
        raise ConnectionError("as planned")

    def _note(self, seed: int, number: int) -> None:
        self.ran[seed, number] += 1
        if (seed, number) in self._returned:
            # A failure that nothing followed, and an event or a value, are recorded with what follows them.
            kind = next(op.kind for op in every(program(seed)) if op.number == number)
            if kind != "fail":
                self.wrong.append(f"seed {seed}: op {number} ({kind}) ran again after it had returned")

    def _interrupt(self, seed: int, op: Op, where: str) -> None:
        """As a crash: what is not recorded is lost. Once, so that the program comes to its end."""
        if op.interrupted == where and (seed, op.number, where) not in self._interrupted:
            self._interrupted.add((seed, op.number, where))
            raise Snooze("0s")
