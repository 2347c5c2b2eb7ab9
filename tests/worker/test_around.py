"""Hooks that are entered where a handler runs: in its own thread, its own task, its own process."""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
from contextlib import asynccontextmanager, contextmanager, suppress

import pytest

from tenure import ConfigError, Context, Fail, Tenure
from tests.waiting import until
from tests.worker import around_app
from tests.worker.serving import serving
from tests.worker.shared_worker import failure

inside = contextvars.ContextVar("inside", default="nothing")


@pytest.fixture
async def app(dsn):
    app = Tenure(dsn)
    yield app
    await app.close()


async def test_a_hook_runs_in_the_thread_of_the_handler_before_and_after_it(app):
    seen = []

    @app.around_thread
    def first(ctx: Context):
        seen.append(("first in", ctx.kind, threading.get_ident()))
        yield
        seen.append(("first out", ctx.kind, threading.get_ident()))

    @app.around_thread
    @contextmanager
    def second(ctx: Context):
        token = inside.set("the second hook")
        yield
        seen.append(("second out", ctx.kind, threading.get_ident()))
        inside.reset(token)

    @app.job
    def work(ctx: Context) -> str:
        seen.append(("handler", ctx.kind, threading.get_ident()))
        return inside.get()

    @app.job
    async def on_loop() -> str:
        return "no hook for me"

    async with serving(app):
        assert await (await work.enqueue()).result("30s") == "the second hook"
        assert await (await on_loop.enqueue()).result("30s") == "no hook for me"
    assert [(what, kind) for what, kind, _ in seen] == [
        ("first in", "work"),
        ("handler", "work"),
        ("second out", "work"),
        ("first out", "work"),
    ]
    assert len({thread for *_, thread in seen}) == 1
    assert seen[0][2] != threading.get_ident()


async def test_a_hook_runs_in_the_task_of_a_coroutine_handler(app):
    seen = []

    @app.around_coroutine
    async def hook(ctx: Context):
        token = inside.set(ctx.kind)
        seen.append(asyncio.current_task())
        yield
        seen.append(asyncio.current_task())
        inside.reset(token)

    @app.around_coroutine
    @asynccontextmanager
    async def another(ctx: Context):
        yield

    @app.job
    async def work() -> str:
        seen.append(asyncio.current_task())
        return inside.get()

    @app.job
    def in_thread() -> str:
        return inside.get()

    async with serving(app):
        assert await (await work.enqueue()).result("30s") == "work"
        assert await (await in_thread.enqueue()).result("30s") == "nothing"
    assert len(seen) == 3
    assert len(set(seen)) == 1


@pytest.mark.parametrize("where", ["before", "after"])
@pytest.mark.parametrize("run_in", ["loop", "thread"])
async def test_what_a_hook_raises_is_an_error_of_the_job(app, where, run_in):
    called = []

    def plain_hook(ctx):
        if where == "before":
            raise LookupError("in the hook")
        yield
        raise LookupError("in the hook")

    async def hook(ctx):
        if where == "before":
            raise LookupError("in the hook")
        yield
        raise LookupError("in the hook")

    def plain() -> None:
        called.append(run_in)

    async def coroutine() -> None:
        called.append(run_in)

    app.around_thread(plain_hook)
    app.around_coroutine(hook)
    job = app.job(name="work", max_attempts=1)(coroutine if run_in == "loop" else plain)
    async with serving(app):
        failed = await failure(await job.enqueue())
    assert (failed.state, failed.error_type, failed.message) == ("dead_letter", "LookupError", "in the hook")
    assert called == ([run_in] if where == "after" else [])


@pytest.mark.parametrize("run_in", ["loop", "thread"])
async def test_a_hook_cannot_turn_a_failure_into_a_success(app, run_in):
    def plain_hook(ctx):
        with suppress(ValueError):
            yield

    async def hook(ctx):
        with suppress(ValueError):
            yield

    def plain() -> None:
        raise ValueError("really")

    async def coroutine() -> None:
        raise ValueError("really")

    app.around_thread(plain_hook)
    app.around_coroutine(hook)
    job = app.job(name="work", max_attempts=1)(coroutine if run_in == "loop" else plain)
    async with serving(app):
        assert (await failure(await job.enqueue())).message == "really"


async def test_a_hook_may_decide_like_a_handler(app):
    @app.around_thread
    def hook(ctx):
        if ctx.kind == "closed":
            raise Fail("closed today")
        yield

    @app.job
    def closed() -> None: ...

    async with serving(app):
        failed = await failure(await closed.enqueue())
    assert (failed.state, failed.message) == ("failed", "closed today")


async def test_a_hook_of_the_wrong_kind_is_refused_where_it_is_given(app):
    async def asynchronous(ctx):
        yield

    def plain(ctx):
        yield

    async def coroutine(ctx): ...

    for hook in (asynchronous, coroutine):
        with pytest.raises(ConfigError, match="is asynchronous: write it with `def`"):
            app.around_thread(hook)
    for hook in (plain, coroutine):
        with pytest.raises(ConfigError, match="must be `async def` with one `yield`"):
            app.around_coroutine(hook)


@pytest.mark.parametrize("name", ["in_process", pytest.param("in_process_async", marks=pytest.mark.slow)])
async def test_hooks_run_in_the_process_of_the_job(dsn, monkeypatch, name):
    monkeypatch.setenv("TENURE_DSN", dsn)
    app = around_app.app
    app.configure()
    async with serving(app):
        told = await (await getattr(around_app, name).enqueue()).result("30s")
    await app.close()
    assert told["hook"] == told["handler"] != os.getpid()


async def test_what_a_hook_raises_in_the_process_of_the_job_is_an_error_of_the_job(dsn, monkeypatch):
    monkeypatch.setenv("TENURE_DSN", dsn)
    app = around_app.app
    app.configure()
    async with serving(app):
        failed = await failure(await around_app.refused_by_hook.enqueue())
    await app.close()
    assert (failed.error_type, failed.message) == ("LookupError", "refused_by_hook")


async def test_a_transaction_is_undone_when_a_hook_fails_after_it(app, sql):
    sql("create table written (n int)")

    @app.around_thread
    def hook(ctx):
        yield
        raise LookupError("in the hook")

    @app.job(max_attempts=1)
    def work(ctx: Context) -> None:
        with ctx.transaction() as tx:
            tx.execute("insert into written values (1)")

    async with serving(app):
        handle = await work.enqueue()
        await until(lambda: sql("select state from tenure.all_jobs"), is_=[("dead_letter",)])
        assert "LookupError" in (await handle.status()).error
    assert sql("select count(*) from written") == [(0,)]
    sql("drop table written")
