"""No payload and no password in any log record, at any level."""

from __future__ import annotations

import asyncio
import json

import pytest

from tenure import Context, Fail, Retry, Snooze
from tests.planted_secrets import PASSWORD, PAYLOAD
from tests.waiting import until
from tests.worker.serving import serving
from tests.worker.test_held import SESSIONS


@pytest.fixture
async def app(app):
    yield app
    await app.close()


def over(database, count):
    finished = "select count(*) from tenure.all_jobs where state in ('dead_letter', 'failed', 'completed', 'canceled')"
    return until(lambda: database.sql(finished), is_=[(count,)])


async def test_neither_input_nor_output_nor_password_is_ever_logged(app, database, caplog):
    assert PASSWORD in str(app.settings.dsn)
    soon = Retry(max_attempts=2, initial="10ms", max_backoff="10ms")

    @app.job(retry=soon)
    async def fails(ctx: Context, word: str) -> None:
        ctx.progress(10, word)
        raise ValueError("something went wrong")

    @app.job(retry=soon)
    async def returns_too_much(word: str) -> int:
        return word  # type: ignore[return-value]

    @app.job(retry=soon)
    async def wants_a_number(word: int) -> None: ...

    @app.job
    async def snoozes(ctx: Context, word: str) -> None:
        if ctx.fence == 1:
            raise Snooze("10ms")
        raise Fail("no")

    @app.job(timeout="50ms", retry=soon)
    async def hangs(word: str) -> None:
        await asyncio.sleep(60)

    @app.job(retry=soon, run_in="thread")
    def in_a_thread(word: str) -> None:
        raise OSError("no")

    with caplog.at_level("DEBUG", "tenure"):
        async with serving(app):
            for job in (fails, returns_too_much, snoozes, hangs, in_a_thread):
                await job.using(key=PAYLOAD, auth={"token": PAYLOAD}, meta={"note": PAYLOAD}).enqueue(PAYLOAD)
            database.enqueue({"kind": "wants_a_number", "input": {"word": PAYLOAD}})
            await over(database, 6)
            database.sql(SESSIONS)
            await app.client().cancel((await fails.using(delay="1h").enqueue(PAYLOAD)).id)
            await over(database, 7)
    assert any("failed in attempt" in record.getMessage() for record in caplog.records)
    errors = [json.dumps(row) for row in database.sql("select kind, error from tenure.all_jobs")]
    assert [error for error in errors if PAYLOAD in error] == []
