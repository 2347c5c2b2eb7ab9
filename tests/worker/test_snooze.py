"""Jobs that are put off until a time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tenure import Context, Snooze, Tenure
from tests.worker.serving import serving
from tests.worker.shared_worker import failure


async def test_a_time_that_has_passed_means_at_once(dsn, database):
    app = Tenure(dsn)

    @app.job
    async def work(ctx: Context) -> int:
        if ctx.fence == 1:
            raise Snooze(until=datetime.now(UTC) - timedelta(hours=1))
        return ctx.attempt

    async with serving(app):
        assert await (await work.enqueue()).result("30s") == 1
    await app.close()


async def test_a_time_without_a_zone_is_an_error_of_the_handler_that_says_so(dsn, database):
    app = Tenure(dsn)

    @app.job(max_attempts=1)
    async def work() -> None:
        raise Snooze(until=datetime(2030, 1, 1))  # noqa: DTZ001 - refused for that

    async with serving(app):
        failed = await failure(await work.enqueue())
    assert (failed.error_type, "has no time zone" in failed.message) == ("ConfigError", True)
    await app.close()
