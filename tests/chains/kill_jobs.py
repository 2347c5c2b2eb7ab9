"""The project of `test_kills`: chains, jobs that wait for them, and points at which a process kills itself."""

from __future__ import annotations

import os
import random
import signal

from tenure import Context, Continue, Retry, Tenure

app = Tenure()

LINKS = 4


def die_sometimes(ctx: Context) -> None:
    """At the first run of a job only, so that no job is quarantined."""
    if ctx.fence == 1 and random.random() < float(os.environ.get("DEADLY", "0")):
        os.kill(os.getpid(), signal.SIGKILL)


@app.job(retry=Retry(max_attempts=5, initial="10ms"))
async def link(ctx: Context, number: int, total: int = 0) -> int | Continue[int]:
    die_sometimes(ctx)
    if number == LINKS:
        return total + number
    following = Continue(link, number + 1, total + number)
    die_sometimes(ctx)
    return following


@app.job(retry=Retry(max_attempts=5, initial="10ms"))
async def join(ctx: Context) -> int:
    die_sometimes(ctx)
    return sum(ctx.blockers)


@app.job(retry=Retry(max_attempts=5, initial="10ms"))
async def spread(ctx: Context, width: int) -> Continue[int]:
    """Starts chains, and its own chain continues when they have ended."""
    children = [await link.enqueue(1) for _ in range(width)]
    die_sometimes(ctx)
    return Continue(join.using(after=children))
