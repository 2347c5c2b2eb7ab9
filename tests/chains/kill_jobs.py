"""The project of `test_kills`: chains, jobs that wait for them, and points at which a process kills itself."""

from __future__ import annotations

import os
import signal

from tenure import Context, Continue, Retry, Tenure

app = Tenure()

LINKS = 4


def die_once(ctx: Context) -> None:
    """At the first run of a job only, so that no job is quarantined."""
    if ctx.fence == 1:
        os.kill(os.getpid(), signal.SIGKILL)


@app.job(retry=Retry(max_attempts=5, initial="10ms"))
async def link(ctx: Context, number: int, total: int = 0, doomed: bool = False) -> int | Continue[int]:
    if number == LINKS:
        return total + number
    following = Continue(link, number + 1, total + number, doomed)
    if doomed and number == 2:
        die_once(ctx)
    return following


@app.job(retry=Retry(max_attempts=5, initial="10ms"))
async def join(ctx: Context) -> int:
    return sum(ctx.blockers)


@app.job(retry=Retry(max_attempts=5, initial="10ms"))
async def spread(ctx: Context, width: int, doomed: bool = False) -> Continue[int]:
    """Starts chains, and its own chain continues when they have ended."""
    children = [await link.enqueue(1) for _ in range(width)]
    if doomed:
        die_once(ctx)
    return Continue(join.using(after=children))
