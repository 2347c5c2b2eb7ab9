"""An app with hooks, for the processes of jobs to import."""

from __future__ import annotations

import os

from tenure import Context, Tenure

app = Tenure()
seen: dict[str, int] = {}


@app.around_thread
def plain(ctx: Context):
    if ctx.kind == "refused_by_hook":
        raise LookupError(ctx.kind)
    seen["hook"] = os.getpid()
    yield


@app.around_coroutine
async def asynchronous(ctx: Context):
    seen["hook"] = os.getpid()
    yield


@app.job(run_in="process")
def in_process() -> dict[str, int]:
    return {**seen, "handler": os.getpid()}


@app.job(run_in="process")
async def in_process_async() -> dict[str, int]:
    return {**seen, "handler": os.getpid()}


@app.job(run_in="process", max_attempts=1)
def refused_by_hook() -> None: ...
