"""The app of a campaign's workers: the jobs of `work`, and schedules. Drills measure without them."""

from __future__ import annotations

import asyncio

from tenure import Context
from tenure.chaos.work import SOON, Made, app, noted

__all__ = ["app"]


@app.cron(every="1s", overlap="allow", catch_up="all", catch_up_limit=1000, jitter="300ms")
@app.job(retry=SOON)
async def every_second(ctx: Context) -> Made:
    """Each of its times has a job, whatever was down meanwhile."""
    with noted(ctx, None) as made:
        return made


@app.cron(every="2s", overlap="skip", priority="high")
@app.job(retry=SOON)
async def one_at_a_time(ctx: Context) -> Made:
    """Now and then it lasts longer than it may, so that the next time is left out."""
    with noted(ctx, None) as made:
        assert ctx.scheduled_for is not None
        await asyncio.sleep(2.5 if ctx.scheduled_for.second % 10 == 0 else 0.1)
        return made


@app.cron(every="5s", overlap="queue", catch_up="all", catch_up_limit=1000, priority="high")
@app.job(retry=SOON)
async def one_after_the_other(ctx: Context) -> Made:
    with noted(ctx, None) as made:
        assert ctx.scheduled_for is not None
        await asyncio.sleep(6.0 if ctx.scheduled_for.second % 30 == 0 else 0.1)
        return made


@app.cron("* * * * *", timezone="Asia/Kolkata", catch_up="none")
@app.job(retry=SOON)
async def by_the_minute(ctx: Context) -> Made:
    with noted(ctx, None) as made:
        return made


@app.cron(every="3s", overlap="allow", catch_up="all", catch_up_limit=1000)
@app.job(retry=SOON)
async def refused_planned(ctx: Context) -> Made:
    """Its jobs are refused now and then when they are to be enqueued. The times of the other schedules must not wait for that."""
    with noted(ctx, None) as made:
        return made
