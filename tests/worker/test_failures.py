"""Every failed attempt is one log record, with the exception itself and the fields by which people search."""

from __future__ import annotations

import logging

import pytest

from tenure import ConfigError, Context, Fail, Retry, Snooze, Tenure
from tenure.logs import extra_fields
from tests.planted_secrets import PAYLOAD
from tests.waiting import until
from tests.worker import remote_app
from tests.worker.serving import serving

AT_ONCE = Retry(max_attempts=3, initial="10ms", max_backoff="10ms", jitter=False)


@pytest.fixture
async def app(app):
    yield app
    await app.close()


def failures(caplog) -> list[logging.LogRecord]:
    return [record for record in caplog.records if record.name == "tenure" and " failed in attempt " in record.getMessage()]


def over(database, within=30.0):
    found = "select 1 from tenure.all_jobs where state in ('dead_letter', 'failed', 'completed')"
    return until(lambda: database.sql(found), within=within)


async def test_each_failed_attempt_is_a_warning_and_the_last_one_an_error(app, database, caplog):
    @app.job(retry=AT_ONCE)
    async def work() -> None:
        raise ValueError("no such address")

    async with serving(app, name="alpha"):
        handle = await work.enqueue()
        await over(database)

    first, second, last = failures(caplog)
    assert [record.levelname for record in (first, second, last)] == ["WARNING", "WARNING", "ERROR"]
    assert first.getMessage() == f"job {handle.id} (work) failed in attempt 1 of 3; the next one follows in 0.01 s"
    assert last.getMessage() == f"job {handle.id} (work) failed in attempt 3 of 3 and is a dead letter now"
    for record in (first, second, last):
        assert record.exc_info
        assert repr(record.exc_info[1]) == "ValueError('no such address')"
        assert record.exc_info[2] is not None
    assert extra_fields(first) | {"worker_id": ""} == {
        "worker": "alpha",
        "job_id": str(handle.id),
        "kind": "work",
        "queue": "default",
        "attempt": 1,
        "max_attempts": 3,
        "worker_id": "",
        "what": "failed",
        "state": "retry",
        "error_type": "ValueError",
        "next_in": 0.01,
    }


async def test_a_timeout_shows_where_the_handler_was(app, database, caplog):
    import asyncio

    @app.job(timeout="50ms", retry=Retry(max_attempts=1))
    async def work() -> None:
        await asyncio.sleep(60)

    async with serving(app):
        await work.enqueue()
        await over(database)

    [record] = failures(caplog)
    assert record.what == "timed_out"
    assert isinstance(record.exc_info[1], TimeoutError)
    assert isinstance(record.exc_info[1].__cause__, asyncio.CancelledError)


async def test_a_handler_that_gives_up_is_a_warning_and_one_that_snoozes_says_nothing(app, database, caplog):
    @app.job
    async def work(ctx: Context) -> None:
        if ctx.fence == 1:
            raise Snooze("10ms")
        raise Fail("the account is closed")

    async with serving(app):
        await work.enqueue()
        await over(database)

    [record] = failures(caplog)
    assert (record.levelname, record.state, record.exc_info) == ("WARNING", "failed", None)
    assert record.getMessage() == f"job {record.job_id} (work) failed in attempt 1 of 3: the account is closed"
    assert (record.error, hasattr(record, "error_type")) == ("the account is closed", False)


async def test_a_crash_names_its_cause_and_the_third_one_the_quarantine_and_the_way_out(dsn, database, caplog):
    app = remote_app.app
    app.configure(dsn=dsn)
    async with serving(app):
        handle = await remote_app.dies.enqueue(PAYLOAD)
        await over(database, within=40)  # three processes are started
        status = await handle.status()
    await app.close()

    records = [record for record in caplog.records if getattr(record, "what", None) == "crashed"]
    assert [record.levelname for record in records] == ["WARNING", "WARNING", "ERROR"]
    first, _, last = records
    assert first.getMessage() == f"job {handle.id} (dies) crashed: its process died: exit code 7; it is requeued"
    assert last.getMessage() == (
        f"job {handle.id} (dies) was quarantined: its process died 3 times while running it, the last time: exit code 7; "
        f"to run it again: tenure jobs replay {handle.id}"
    )
    assert [(record.crashes, record.why, record.state) for record in records] == [
        (1, "crashed", "pending"),
        (2, "crashed", "pending"),
        (3, "crashed", "dead_letter"),
    ]
    assert first.error == "its process died: exit code 7"
    assert last.error == status.error


async def test_the_levels_are_settings(app, database, caplog):
    app.configure(log_failed_attempt="debug", log_dead_letter="critical")

    @app.job(retry=Retry(max_attempts=2, initial="10ms", max_backoff="10ms"))
    async def work() -> None:
        raise ValueError

    with caplog.at_level("DEBUG", "tenure"):
        async with serving(app):
            await work.enqueue()
            await over(database)
    assert [record.levelname for record in failures(caplog)] == ["DEBUG", "CRITICAL"]


def test_a_level_that_does_not_exist_is_refused():
    with pytest.raises(
        ConfigError, match=r"log_dead_letter.*'loud' is not a log level: use debug, info, warning, error, critical"
    ):
        _ = Tenure("postgresql://", log_dead_letter="loud").settings
