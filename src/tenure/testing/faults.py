"""Failures that a test makes happen: a worker that dies, a lease that is lost."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tenure.model.errors import ProcessDied
from tenure.store import testing
from tenure.store.link import Link
from tenure.testing.runtimes import AnyJob, runtime_of
from tenure.worker.run.context import Context
from tenure.worker.run.middleware import CallNext

Fault = Callable[[Context, CallNext], Awaitable[Any]]


@contextmanager
def crash_after(job: AnyJob, *, times: int = 1) -> Iterator[None]:
    """Lets the worker die when the handler has returned, before its outcome is written.

    The job runs again, as after a real crash: no attempt is spent, the crash is counted, and what the handler wrote in
    `ctx.transaction()` is rolled back. What it did elsewhere is done twice. Fails if the job did not run that often.
    """

    async def crash(_: Context, call_next: CallNext) -> Any:
        await call_next()
        raise ProcessDied(f"a test let its worker die after {job.name} had returned")

    with _injected(job, crash, times):
        yield


@contextmanager
def lose_lease(job: AnyJob, *, times: int = 1) -> Iterator[None]:
    """The job is taken from its worker before the handler is called, as when the worker was suspended for too long.

    The handler runs, but none of its writes to Tenure is accepted: no outcome, progress or `ctx.transaction()`. The job runs
    again.
    """

    async def lose(ctx: Context, call_next: CallNext) -> Any:
        run = ctx._run  # noqa: SLF001 - this package is part of the product
        async with Link(runtime_of(job).database(), "test") as link:
            await link.fetch(testing.lose_claim(run.job_id, run.claim_id))
        return await call_next()

    with _injected(job, lose, times):
        yield


@contextmanager
def _injected(job: AnyJob, fault: Fault, times: int) -> Iterator[None]:
    left = times

    async def layer(ctx: Context, call_next: CallNext) -> Any:
        nonlocal left
        if ctx.kind != job.name or left <= 0:
            return await call_next()
        left -= 1
        return await fault(ctx, call_next)

    layers = runtime_of(job).kinds.middleware
    layers.insert(0, layer)
    try:
        yield
    finally:
        layers.remove(layer)
    if left:
        raise AssertionError(f"{job.name} ran {times - left} of {times} times inside of the block: drain the app there")
