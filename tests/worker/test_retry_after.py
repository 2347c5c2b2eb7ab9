"""`RetryAfter`: a failed attempt that says itself when the next one follows."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tenure import ConfigError, Context, Retry, RetryAfter, Tenure
from tenure.model.outcomes import Outcome
from tenure.testing import bound, drain, temporary_database, travel

app = Tenure(log_failed_attempt="debug", log_dead_letter="debug")


@app.job(retry=Retry(max_attempts=2, initial="1s"))
async def returns(ctx: Context, succeeds_at: int) -> int | RetryAfter:
    return ctx.attempt if ctx.attempt >= succeeds_at else RetryAfter("1h")


@app.job(max_attempts=2)
def raises(ctx: Context) -> None:
    try:
        raise ConnectionError("429 Too Many Requests")
    except ConnectionError as error:
        raise RetryAfter("2h") from error


@app.job(max_attempts=2, run_in="process")
def in_process() -> None:
    raise RetryAfter("3h", "busy")


@pytest.fixture
def bound_app(server_dsn):
    with temporary_database(server_dsn) as dsn, bound(app, dsn):
        yield app


async def test_the_next_attempt_follows_after_the_delay(bound_app):
    await returns.enqueue(2)
    [first] = await drain(app, retries=False)
    assert (first.what, first.state, first.attempt) == ("failed", "retry", 1)
    travel(app, minutes=59)
    assert await drain(app, retries=False) == []
    travel(app, minutes=2)
    [second] = await drain(app, retries=False)
    assert (second.state, second.output) == ("completed", 2)


async def test_an_attempt_is_spent(bound_app):
    handle = await returns.enqueue(3)
    first, second = await drain(app)
    assert (first.state, second.state, second.attempt) == ("retry", "dead_letter", 2)
    assert "to be tried again after 1:00:00" in (await handle.status()).error


@pytest.mark.parametrize(
    ("job", "hours", "error"), [(raises, 2, "ConnectionError: 429 Too Many Requests"), (in_process, 3, "busy")]
)
async def test_raised_in_threads_and_processes(bound_app, job, hours, error):
    handle = await job.enqueue()
    [run] = await drain(app, retries=False)
    assert run.state == "retry"
    assert error in run.error
    status = await handle.status()
    assert timedelta(hours=hours - 1) < status.run_at - status.enqueued_at < timedelta(hours=hours + 1)


def test_its_wire_form():
    name, value = RetryAfter("5s", "busy").to_wire()
    copy = Outcome.from_wire(name, value)
    assert (type(copy), copy.delay, copy.reason) == (RetryAfter, timedelta(seconds=5), "busy")


def test_a_delay_is_needed():
    with pytest.raises(ConfigError, match="RetryAfter delay"):
        RetryAfter("soon")
