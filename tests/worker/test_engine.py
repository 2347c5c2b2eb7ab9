"""How runs end, with a worker in this process on a real database."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic import BaseModel

from tenure import Cancel, Context, Fail, Retry, Snooze
from tests.waiting import until
from tests.worker.serving import serving

AT_ONCE = Retry(max_attempts=3, initial="10ms", max_backoff="10ms", jitter=False)


def finished(database: Any, count: int = 1) -> Any:
    return until(lambda: database.sql("select count(*) from tenure.history")[0][0] + dead(database), is_=count)


def dead(database: Any) -> int:
    return int(database.sql("select count(*) from tenure.jobs where state = 'dead_letter'")[0][0])


@pytest.fixture
async def app(app):
    yield app
    await app.close()


async def test_the_highest_priority_runs_first_and_equals_in_order(app, database):
    ran = []

    @app.job
    async def work(n: int) -> None:
        ran.append(n)

    calls = [work.using(priority=priority).call(n) for n, priority in enumerate((0, 50, 100, 50, 100))]
    await app.enqueue_many(calls)
    async with app.running(concurrency=1):
        await finished(database, 5)
    assert ran == [2, 4, 1, 3, 0]


async def test_the_next_claim_is_sent_before_the_claimed_jobs_start(app, database):
    """Half of the slots are filled at a time. Jobs that never wait would otherwise run to their end before the other half is
    claimed, and PostgreSQL would have nothing to do meanwhile."""
    claims_under_way: list[int] = []

    @app.job
    async def work() -> None:
        claims_under_way.append(len(worker._engine.claims_under_way))

    await app.enqueue_many(work.call() for _ in range(300))
    async with serving(app, concurrency=200) as worker:
        await finished(database, 300)
    assert claims_under_way[:100] == [1] * 100


async def test_a_failed_run_is_retried_after_its_backoff_and_completes(app, database):
    attempts = []

    @app.job(retry=AT_ONCE)
    async def work(ctx: Context) -> str:
        attempts.append((ctx.attempt, ctx.is_retry, ctx.is_last_attempt, ctx.fence))
        if ctx.attempt < 3:
            raise ValueError("not yet")
        return "done"

    async with app.running():
        handle = await work.enqueue()
        await finished(database)
    assert attempts == [(1, False, False, 1), (2, True, False, 2), (3, True, True, 3)]
    status = await handle.status()
    assert (status.state, status.output, status.attempt) == ("completed", "done", 3)


async def test_a_retry_waits_for_its_back_off(app, database):
    @app.job(retry=Retry(max_attempts=3, initial="1h", max_backoff="1h", jitter=False))
    async def work() -> None:
        raise ValueError("not yet")

    async with app.running():
        handle = await work.enqueue()
        await until(lambda: database.sql("select state from tenure.jobs"), is_=[("retry",)])
    status = await handle.status()
    assert "not yet" in (status.error or "")
    assert database.sql("select run_at - started_at > interval '59 minutes' from tenure.jobs") == [(True,)]


async def test_when_the_attempts_are_used_up_the_job_is_dead_lettered(app, database):
    ran = []

    @app.job(retry=AT_ONCE)
    async def work() -> None:
        ran.append(1)
        raise ValueError("never")

    async with app.running():
        handle = await work.enqueue()
        await finished(database)
    status = await handle.status()
    assert (status.state, status.attempt, len(ran)) == ("dead_letter", 3, 3)
    assert "ValueError: never" in (status.error or "")


async def test_an_error_that_the_policy_gives_up_on_dead_letters_at_once(app, database):
    @app.job(retry=Retry(max_attempts=5, give_up_on=KeyError))
    async def work() -> None:
        raise KeyError("gone")

    async with app.running():
        handle = await work.enqueue()
        await finished(database)
    status = await handle.status()
    assert (status.state, status.attempt) == ("dead_letter", 1)


@pytest.mark.parametrize("how", ["returned", "raised"])
@pytest.mark.parametrize(
    ("outcome", "state", "error"),
    [(Fail("no such user"), "failed", "no such user"), (Cancel("not needed"), "canceled", "not needed")],
    ids=["fail", "cancel"],
)
async def test_a_final_outcome_is_final_returned_or_raised(app, database, how, outcome, state, error):  # noqa: PLR0917
    @app.job(max_attempts=5)
    async def work() -> Any:
        if how == "raised":
            raise outcome
        return outcome

    async with app.running():
        handle = await work.enqueue()
        await finished(database)
    status = await handle.status()
    assert (status.state, status.attempt, status.error) == (state, 1, error)


@pytest.mark.parametrize("how", ["returned", "raised"])
async def test_a_snooze_spends_no_attempt(app, database, how):
    attempts = []

    @app.job(max_attempts=1)
    async def work(ctx: Context) -> Any:
        attempts.append((ctx.attempt, ctx.fence))
        if len(attempts) < 3:
            if how == "raised":
                raise Snooze("10ms")
            return Snooze("10ms")
        return None

    async with app.running():
        await work.enqueue()
        await finished(database)
    assert attempts == [(1, 1), (1, 2), (1, 3)]
    assert database.sql("select state, attempt from tenure.history") == [("completed", 1)]


class Message(BaseModel):
    to: str
    copies: int


async def test_a_job_whose_stored_input_no_longer_fits_is_dead_lettered_at_once_with_every_fault(app, database):
    ran = []

    @app.job(max_attempts=5)
    async def send(message: Message) -> None:
        ran.append(message)

    database.enqueue({"kind": "send", "input": {"to": 5, "copies": "many"}})
    async with app.running():
        await finished(database)
    [(state, attempt, error)] = database.sql("select state, attempt, error from tenure.jobs")
    assert (state, attempt, ran) == ("dead_letter", 1, [])
    assert "to" in error
    assert "copies" in error


async def test_an_output_that_does_not_fit_takes_the_way_of_errors(app, database):
    @app.job(retry=Retry(max_attempts=2, initial="10ms"))
    async def work() -> int:
        return "seven"  # type: ignore[return-value]

    async with app.running():
        handle = await work.enqueue()
        await finished(database)
    status = await handle.status()
    assert (status.state, status.attempt) == ("dead_letter", 2)
    assert "InvalidOutput" in (status.error or "")


class Rude(BaseException):
    pass


@pytest.mark.parametrize("run_in", ["loop", "thread"])
@pytest.mark.parametrize(
    "error", [SystemExit, KeyboardInterrupt, asyncio.CancelledError, Rude, StopIteration], ids=lambda e: e.__name__
)
async def test_any_error_of_a_handler_ends_its_job_and_not_the_worker(app, database, error, run_in):
    async def in_loop() -> None:
        raise error

    def in_thread() -> None:
        raise error

    rude = app.job(name="rude", max_attempts=1)(in_loop if run_in == "loop" else in_thread)

    @app.job
    async def polite() -> None: ...

    async with serving(app):
        handle = await rude.enqueue()
        await until(lambda: dead(database), is_=1)
        await polite.enqueue()
        await finished(database, 2)
    assert (await handle.status()).state == "dead_letter"


async def test_a_snooze_that_postgresql_cannot_keep_is_an_error_of_the_job(app, database):
    @app.job(max_attempts=1)
    async def work() -> Any:
        outcome = Snooze("1s")
        outcome.delay = outcome.delay * 10**13
        return outcome

    async with app.running():
        handle = await work.enqueue()
        await finished(database)
    assert (await handle.status()).state == "dead_letter"
