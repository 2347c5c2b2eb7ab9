"""Layers around handlers: for the whole app and for a kind, the same for every executor."""

from __future__ import annotations

import contextvars

import pytest

from tenure import Context, Fail, Retry, Snooze, Tenure
from tests.waiting import until
from tests.worker.handlers import EXECUTORS, Order, Receipt, coroutine, plain
from tests.worker.serving import serving
from tests.worker.shared_worker import failure

colour = contextvars.ContextVar("colour", default="none")
# Either function in a process takes the same way.
everywhere = pytest.mark.parametrize("executor", [*EXECUTORS[:2], pytest.param(EXECUTORS[2], marks=pytest.mark.slow)])


@pytest.fixture
async def app(dsn):
    app = Tenure(dsn)
    yield app
    await app.close()


def job_in(app, executor, **options):
    """The job of `handlers.py`, with middleware of this test's own."""
    run_in, _, is_async = executor.partition("_")
    handler = coroutine if is_async or run_in == "loop" else plain
    return app.job(name=f"{executor}_job", run_in=run_in, **options)(handler)


def layer(name, seen):
    async def middleware(ctx, call_next):
        seen.append(f"{name} in")
        result = await call_next()
        seen.append(f"{name} out")
        return result

    return middleware


@everywhere
async def test_the_first_layer_is_the_outermost_and_those_of_the_app_stand_around_those_of_the_kind(dsn, executor):
    seen = []
    app = Tenure(dsn, middleware=[layer("given", seen)])
    app.middleware(layer("first", seen))
    job = job_in(app, executor, middleware=[layer("kind's first", seen), layer("kind's second", seen)])
    app.middleware(layer("second", seen))
    async with serving(app):
        handle = await job.enqueue(Order(act="give", number=1))
        assert (await handle.result("30s")).number == 2
    names = ["given", "first", "second", "kind's first", "kind's second"]
    assert seen == [f"{name} in" for name in names] + [f"{name} out" for name in reversed(names)]
    await app.close()


@everywhere
async def test_a_layer_sees_the_typed_result_and_may_give_another(app, executor):
    seen = []

    async def double(ctx, call_next):
        receipt = await call_next()
        seen.append(type(receipt))
        return receipt.model_copy(update={"number": receipt.number * 2})

    job = job_in(app, executor, middleware=[double])
    async with serving(app):
        handle = await job.enqueue(Order(act="give", number=20))
        assert await handle.result("30s") == Receipt(number=42, order=Order(act="give", number=20))
    assert seen == [Receipt]


@everywhere
async def test_a_layer_sees_what_the_handler_raises_and_lets_it_pass(app, executor):
    seen = []

    async def watch(ctx, call_next):
        try:
            return await call_next()
        except Exception as error:
            seen.append((ctx.attempt, str(error)))
            raise

    job = job_in(app, executor, middleware=[watch], retry=Retry(2, initial="10ms", jitter=False))
    async with serving(app):
        failed = await failure(await job.enqueue(Order(act="fail")))
    assert (failed.error_type, failed.message) == ("ValueError", "boom in attempt 2")
    assert 'raise ValueError(f"boom' in failed.traceback
    assert [attempt for attempt, _ in seen] == [1, 2]
    assert all(f"boom in attempt {attempt}" in text for attempt, text in seen)


@everywhere
async def test_what_a_layer_raises_from_the_handlers_error_still_shows_that_error(app, executor):
    async def translate(ctx, call_next):
        try:
            return await call_next()
        except Exception as error:
            raise RuntimeError("translated") from error

    job = job_in(app, executor, middleware=[translate], max_attempts=1)
    async with serving(app):
        failed = await failure(await job.enqueue(Order(act="fail")))
    assert (failed.error_type, failed.message) == ("RuntimeError", "translated")
    assert 'raise ValueError(f"boom in attempt {ctx.attempt}")' in failed.traceback


@everywhere
async def test_a_layer_may_turn_an_error_into_an_outcome(app, executor):
    async def forgive(ctx, call_next):
        try:
            return await call_next()
        except Exception:
            return Fail("forgiven")

    job = job_in(app, executor, middleware=[forgive])
    async with serving(app):
        failed = await failure(await job.enqueue(Order(act="fail")))
    assert (failed.state, failed.message, failed.traceback) == ("failed", "forgiven", "")


@everywhere
async def test_a_layer_sees_the_outcome_that_the_handler_decided_on(app, executor):
    seen = []

    async def watch(ctx, call_next):
        try:
            result = await call_next()
        except Snooze as snooze:
            seen.append(("raised", snooze.delay.total_seconds()))
            raise
        seen.append(("returned", result.delay.total_seconds()))
        return result

    job = job_in(app, executor, middleware=[watch])
    async with serving(app):
        handles = [await job.enqueue(Order(act="decide", text=f"{how} Snooze")) for how in ("returns", "raises")]
        for handle in handles:

            async def state(handle=handle):
                return (await handle.status()).state

            await until(state, is_="scheduled")
    assert sorted(seen) == [("raised", 3600), ("returned", 3600)]


async def test_a_layer_may_answer_without_calling_the_handler(app):
    called = []

    async def cached(ctx, call_next):
        return ctx.input["word"].upper()

    @app.job(middleware=[cached, layer("inner", called)])
    async def work(word: str) -> str:
        called.append("handler")
        return word

    async with serving(app):
        assert await (await work.enqueue("cached")).result("30s") == "CACHED"
    assert called == []


@pytest.mark.parametrize("where", ["before", "after"])
@pytest.mark.parametrize("run_in", ["loop", "thread"])
async def test_a_layer_that_raises_is_an_error_of_the_job(app, where, run_in):
    async def broken(ctx, call_next):
        if where == "after":
            await call_next()
        raise LookupError("in the layer")

    job = job_in(app, run_in, middleware=[broken], max_attempts=1)
    async with serving(app):
        failed = await failure(await job.enqueue(Order(act="give")))
    assert (failed.state, failed.error_type, failed.message) == ("dead_letter", "LookupError", "in the layer")


@pytest.mark.parametrize("run_in", ["loop", "thread"])
async def test_context_variables_of_a_layer_are_seen_by_the_handler(app, run_in):
    seen = []

    async def paint(ctx, call_next):
        token = colour.set("red")
        try:
            return await call_next()
        finally:
            colour.reset(token)

    async def on_loop() -> None:
        seen.append(colour.get())

    def in_thread() -> None:
        seen.append(colour.get())

    job = app.job(name="work", middleware=[paint])(on_loop if run_in == "loop" else in_thread)
    async with serving(app):
        await (await job.enqueue()).result("30s")
    assert seen == ["red"]
    assert colour.get() == "none"


async def test_a_layer_may_pass_the_context_on_or_leave_it_out(app):
    seen = []

    async def passes(ctx, call_next):
        return await call_next(ctx)

    async def leaves_out(ctx, call_next):
        seen.append(ctx.job_id)
        return await call_next()

    @app.job(middleware=[passes, leaves_out, passes])
    async def work(ctx: Context) -> None:
        seen.append(ctx.job_id)

    async with serving(app):
        handle = await work.enqueue()
        await handle.result("30s")
    assert seen == [handle.id, handle.id]


@pytest.mark.parametrize("run_in", ["loop", "thread"])
async def test_a_layer_may_call_the_handler_once_more(app, run_in):
    calls = []

    async def insist(ctx, call_next):
        try:
            return await call_next()
        except ConnectionError:
            return await call_next()

    def flaky(ctx: Context) -> int:
        calls.append(ctx.attempt)
        if len(calls) == 1:
            raise ConnectionError("not yet")
        return len(calls)

    async def flaky_async(ctx: Context) -> int:
        return flaky(ctx)

    job = app.job(name="flaky", middleware=[insist])(flaky_async if run_in == "loop" else flaky)
    async with serving(app):
        assert await (await job.enqueue()).result("30s") == 2
    assert calls == [1, 1]
