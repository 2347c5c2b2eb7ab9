"""The app of a campaign's workers: the jobs of `tenure.chaos.jobs`, workflows, and schedules. Drills run only the jobs."""

from __future__ import annotations

import asyncio

import tenure.chaos.workflows  # noqa: F401 - defines its kinds in the same app
from tenure import Context
from tenure.chaos.jobs import QUICK_RETRY, RunOutput, app, recorded

__all__ = ["app"]


@app.cron(every="1s", overlap="allow", catch_up="all", catch_up_limit=1000, jitter="300ms")
@app.job(retry=QUICK_RETRY)
async def every_second(ctx: Context) -> RunOutput:
    """Every planned time has a job, even if workers or the server were down."""
    with recorded(ctx, None) as output:
        return output


@app.cron(every="2s", overlap="skip", priority="high")
@app.job(retry=QUICK_RETRY)
async def one_at_a_time(ctx: Context) -> RunOutput:
    """Sometimes runs longer than its interval, so that the next time is skipped."""
    with recorded(ctx, None) as output:
        assert ctx.scheduled_for is not None
        await asyncio.sleep(2.5 if ctx.scheduled_for.second % 10 == 0 else 0.1)
        return output


@app.cron(every="5s", overlap="queue", catch_up="all", catch_up_limit=1000, priority="high")
@app.job(retry=QUICK_RETRY)
async def one_after_the_other(ctx: Context) -> RunOutput:
    with recorded(ctx, None) as output:
        assert ctx.scheduled_for is not None
        # Longer than its interval once a minute: the next times queue up, and are caught up with in between.
        await asyncio.sleep(6.0 if ctx.scheduled_for.second == 0 else 0.1)
        return output


@app.cron("* * * * *", timezone="Asia/Kolkata", catch_up="none")
@app.job(retry=QUICK_RETRY)
async def by_the_minute(ctx: Context) -> RunOutput:
    with recorded(ctx, None) as output:
        return output


@app.cron(every="3s", overlap="allow", catch_up="all", catch_up_limit=1000)
@app.job(retry=QUICK_RETRY)
async def refused_planned(ctx: Context) -> RunOutput:
    """Its jobs are sometimes refused when they are enqueued. The other schedules must not wait for that."""
    with recorded(ctx, None) as output:
        return output
