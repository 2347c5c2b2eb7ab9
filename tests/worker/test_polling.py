"""Notifications only save time: a worker that receives none polls."""

from __future__ import annotations

from tests.waiting import until


async def test_jobs_without_a_notification_are_found_by_polling(app, database):
    @app.job
    async def work() -> None: ...

    async with app.running():
        for done in range(1, 4):  # a worker also looks when it starts
            database.enqueue({})
            await until(lambda done=done: database.sql("select count(*) from tenure.history"), is_=[(done,)], within=20)
    await app.close()
