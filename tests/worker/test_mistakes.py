"""Mistakes that are easily made with handlers, and the errors that name them."""

from __future__ import annotations

import asyncio

from tenure import Tenure
from tests.worker.serving import serving
from tests.worker.shared_worker import failure


async def test_a_plain_function_that_returns_a_coroutine_is_reported_as_a_mistake(dsn, database, recwarn):
    app = Tenure(dsn)

    @app.job(max_attempts=1)
    def work() -> str:
        return asyncio.sleep(1, "never")

    async with serving(app):
        failed = await failure(await work.enqueue())
    assert failed.error_type == "ConfigError"
    assert "is a plain function that returned a coroutine, which is never run: use `async def`" in failed.message
    assert [str(warning.message) for warning in recwarn] == []
    await app.close()
