"""(w) Workflows of steps that do nothing: one after the other, many at once, and how fast they start.

Statements are all that the worker's database committed beyond those of an idle worker, by the number of steps.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from benchmarks.drain import enqueue_all
from benchmarks.server import Server
from benchmarks.workers import Worker
from tenure import Tenure, WorkflowContext

AT_ONCE = 100
"""Workflows that run at the same time."""

PATIENCE = "180s"

app = Tenure()


async def nothing(number: int) -> int:
    return number


@app.workflow(timeout=None)
async def take_steps(ctx: WorkflowContext, count: int) -> int:
    for number in range(count):
        await ctx.step("nothing", nothing, number)
    return count


@dataclass(frozen=True, slots=True)
class Stepping:
    rate: float
    """Steps (or workflows) a second."""
    statements: float
    """Per step (or workflow)."""


def measure(server: Server, steps: int) -> dict[str, Stepping]:
    """By key: one workflow with all steps, many that share them, and as many workflows of one step."""
    return {
        "steps_alone": _measured(server, steps, lambda: _run([steps])),
        "steps_together": _measured(server, AT_ONCE * (steps // 10), lambda: _run([steps // 10] * AT_ONCE)),
        "workflow_starts": _measured(server, steps, lambda: _run([1] * steps)),
    }


def _measured(server: Server, number: int, run: Callable[[], Coroutine[Any, Any, None]]) -> Stepping:
    with server.database() as dsn:
        app.configure(dsn=dsn)
        with Worker(dsn, app="benchmarks.workflows:app", concurrency=AT_ONCE):
            asyncio.run(_run([1]))
            commits = server.commits(dsn)
            server.checkpoint()
            began = time.perf_counter()
            asyncio.run(run())
            seconds = time.perf_counter() - began
        return Stepping(number / seconds, (server.commits(dsn) - commits) / number)


async def _run(counts: list[int]) -> None:
    """Returns when all of them have ended. They were enqueued together, so few are left when the last has ended."""
    ids: list[UUID] = await enqueue_all(app, (take_steps.call(count) for count in counts))
    for job in ids[-AT_ONCE:]:
        await take_steps.handle(job).result(PATIENCE)
    await app.close()
