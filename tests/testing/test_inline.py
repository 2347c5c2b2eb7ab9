"""`run_inline`: jobs run where they are enqueued."""

from __future__ import annotations

import threading

import pytest

from tenure import Cancel, ConfigError, Context, Continue, Fail, JobCanceled, JobFailed, JobUnfinished, Retry, Snooze, Tenure
from tenure.testing import run_inline

app = Tenure("postgresql://nowhere.invalid/test")
RAN: list[object] = []


@app.job
async def double(n: int) -> int:
    return 2 * n


@app.job
def plain(ctx: Context, n: int) -> int:
    RAN.append(threading.current_thread())
    ctx.progress(50)
    return n


@app.job(retry=Retry(max_attempts=3, give_up_on=ZeroDivisionError))
async def flaky(ctx: Context, fails: int) -> int:
    if ctx.attempt <= fails:
        raise ConnectionError(f"attempt {ctx.attempt}")
    return ctx.attempt


@app.job
async def parent(n: int) -> int:
    child = await double.enqueue(n)
    return await child.result() + plain.enqueue_sync(n).result_sync()


@app.job
async def outcome(what: str) -> int | Fail | Cancel | Snooze:
    return {"fail": Fail("no"), "cancel": Cancel("no"), "snooze": Snooze("1h")}[what]


@app.job
async def counts_down(n: int) -> str | Continue[str]:
    return Continue(counts_down_plainly, n - 1) if n else "lift off"


@app.job
def counts_down_plainly(n: int) -> str | Continue[str]:
    return Continue(counts_down.using(queue="other"), n - 1) if n else "lift off"


@pytest.fixture(autouse=True)
def inline():
    RAN.clear()
    with run_inline(app) as runner:
        yield runner


async def test_the_result_is_there_at_once():
    handle = await double.enqueue(4)
    assert await handle.result() == 8
    status = await handle.status()
    assert (status.state, status.output, status.input, status.attempt) == ("completed", 8, {"n": 4}, 1)


def test_without_an_event_loop():
    assert double.enqueue_sync(4).result_sync() == 8
    assert plain.enqueue_sync(4).result_sync() == 4
    assert [threading.current_thread()] == RAN


async def test_jobs_that_enqueue_jobs(inline):
    assert await (await parent.enqueue(3)).result() == 9
    assert [handle.kind for handle in inline.handles] == ["parent", "double", "plain"]


async def test_by_name_and_many():
    assert await (await app.enqueue("double", {"n": 2})).result() == 4
    assert [await handle.result() for handle in await app.enqueue_many([double.call(n) for n in (1, 2)])] == [2, 4]


async def test_attempts_are_repeated_at_once():
    assert await (await flaky.enqueue(2)).result() == 3


async def test_an_error_is_raised_where_the_job_was_enqueued():
    with pytest.raises(ConnectionError, match="attempt 3"):
        await flaky.enqueue(3)


async def test_an_error_is_kept_for_the_result_if_so_wanted():
    with run_inline(app, propagate=False):
        handle = await flaky.enqueue(3)
    assert (await handle.status()).state == "dead_letter"
    with pytest.raises(JobFailed, match="attempt 3"):
        await handle.result()


async def test_outcomes():
    with pytest.raises(JobFailed, match="no"):
        await (await outcome.enqueue("fail")).result()
    with pytest.raises(JobCanceled, match="no"):
        await (await outcome.enqueue("cancel")).result()
    with pytest.raises(JobUnfinished):
        await (await outcome.enqueue("snooze")).result()


@pytest.mark.parametrize("first", [counts_down, counts_down_plainly])
async def test_chains_run_to_their_last_link(first):
    assert await (await first.enqueue(3)).result() == "lift off"
    assert first.enqueue_sync(2).result_sync() == "lift off"


async def test_what_waits_for_other_jobs_is_refused_clearly():
    handle = await double.enqueue(1)
    with pytest.raises(ConfigError, match=r"run them with drain\(app\)"):
        await double.using(after=[handle]).enqueue(2)
    with pytest.raises(ConfigError, match=r"run them with drain\(app\)"):
        await app.gather([double.call(1)])


async def test_a_key_is_taken_once(inline):
    first = await double.using(key="k").enqueue(1)
    second = await double.using(key="k").enqueue(2)
    assert (second.id, second.existed, await second.result()) == (first.id, True, 2)
    assert len(inline.handles) == 1


def test_middleware_is_around_the_handler():
    seen = []

    @app.middleware
    async def note(ctx, call_next):
        seen.append(ctx.kind)
        return await call_next()

    try:
        assert plain.enqueue_sync(1).result_sync() == 1
        assert double.enqueue_sync(1).result_sync() == 2
    finally:
        app.kinds.middleware.remove(note)
    assert seen == ["plain", "double"]


async def test_the_transaction_of_a_handler_is_committed(tenure_app, tenure_dsn):
    import psycopg

    @tenure_app.job(name="writes_a_row")
    async def writes_a_row(ctx: Context) -> None:
        async with ctx.transaction() as connection:
            await connection.execute("create table inline_rows (id integer)")

    try:
        with run_inline(tenure_app):
            await writes_a_row.enqueue()
        with psycopg.connect(tenure_dsn, autocommit=True) as connection:
            connection.execute("drop table inline_rows")
    finally:
        del tenure_app.kinds._kinds["writes_a_row"]
