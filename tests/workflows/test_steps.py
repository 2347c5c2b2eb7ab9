"""Steps of workflows, with a worker in this process on a real database."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import psycopg
import pytest
from pydantic import BaseModel

from tenure import ConfigError, Context, JobFailed, Retry, StepFailed, WorkflowContext
from tenure.worker.run import steps as step_writer
from tests.waiting import until
from tests.worker.serving import serving

AT_ONCE = Retry(max_attempts=3, initial="10ms", max_backoff="10ms", jitter=False)


class Receipt(BaseModel):
    total: Decimal
    at: datetime


def names(sql: Any) -> list[str]:
    return [name for (name,) in sql("select name from tenure.steps order by number")]


async def test_a_workflow_returns_what_its_steps_made(app, sql):
    async def double(n: int) -> int:
        return 2 * n

    def half(n: int) -> float:
        assert threading.current_thread() is not threading.main_thread()
        return n / 2

    @app.workflow
    async def numbers(ctx: WorkflowContext, n: int) -> float:
        doubled = await ctx.step("double", double, n)
        again = await ctx.step("double", double, doubled)
        return await ctx.step("half", half, again)

    async with serving(app):
        handle = await numbers.enqueue(3)
        assert await handle.result("20s") == 6.0
    assert names(sql) == ["double", "double#2", "half"]
    assert sql("select name, what, state, output, attempts, fence from tenure.steps order by number")[1] == (
        "double#2", "step", "done", 12, 1, 1,
    )  # fmt: skip


async def test_a_run_that_continues_gets_the_recorded_results_with_their_types(app, sql):
    calls = []

    async def pay(total: Decimal) -> Receipt:
        calls.append("pay")
        return Receipt(total=total, at=datetime(2030, 1, 1, tzinfo=UTC))

    @app.workflow(retry=AT_ONCE)
    async def order(ctx: WorkflowContext) -> str:
        receipt = await ctx.step("pay", pay, Decimal("9.99"))
        calls.append(type(receipt).__name__)
        if ctx.attempt == 1:
            raise ValueError("not yet")
        return f"{receipt.total} {receipt.at:%Y}"

    async with serving(app):
        assert await (await order.enqueue()).result("20s") == "9.99 2030"
    assert calls == ["pay", "Receipt", "Receipt"]
    assert sql("select count(*) from tenure.steps") == [(1,)]


async def test_a_value_without_an_annotation_is_plain_json_in_every_run(app):
    seen = []

    async def load():
        return {"when": datetime(2030, 1, 1, tzinfo=UTC), "pair": (1, 2)}

    @app.workflow(retry=AT_ONCE)
    async def work(ctx: WorkflowContext) -> None:
        seen.append(await ctx.step("load", load))
        if ctx.attempt == 1:
            raise ValueError("not yet")

    async with serving(app):
        await (await work.enqueue()).result("20s")
    assert seen == [{"when": "2030-01-01T00:00:00Z", "pair": [1, 2]}] * 2


async def test_a_step_that_fails_is_tried_again_in_place(app, sql):
    tries = []

    async def flaky() -> str:
        tries.append(1)
        if len(tries) < 3:
            raise ConnectionError("no answer")
        return "ok"

    @app.workflow
    async def work(ctx: WorkflowContext) -> str:
        return await ctx.step("flaky", flaky, retry=AT_ONCE)

    async with serving(app):
        handle = await work.enqueue()
        assert await handle.result("20s") == "ok"
    assert (await handle.status()).attempt == 1
    assert sql("select attempts, state from tenure.steps") == [(3, "done")]


async def test_a_step_that_failed_for_good_fails_the_attempt_and_the_next_attempt_tries_it_again(app, sql):
    tries = []

    async def broken() -> None:
        tries.append(1)
        raise ConnectionError("no answer")

    @app.workflow(retry=AT_ONCE)
    async def work(ctx: WorkflowContext) -> None:
        await ctx.step("broken", broken)

    async with serving(app):
        with pytest.raises(JobFailed) as failed:
            await (await work.enqueue()).result("20s")
    assert len(tries) == 3
    assert failed.value.error_type == "StepFailed"
    assert "ConnectionError: no answer" in failed.value.error_message
    assert names(sql) == []


async def test_a_failure_that_the_workflow_handles_is_the_same_in_every_run(app, sql):
    tries, handled = [], []

    async def broken() -> None:
        tries.append(1)
        raise ConnectionError("no answer")

    async def note(text: str) -> str:
        return text

    @app.workflow(retry=AT_ONCE)
    async def work(ctx: WorkflowContext) -> str:
        try:
            await ctx.step("broken", broken)
        except StepFailed as error:
            handled.append((error.step, error.error_type, error.error_message))
        noted = await ctx.step("note", note, "handled")
        if ctx.attempt == 1:
            raise ValueError("not yet")
        return noted

    async with serving(app):
        assert await (await work.enqueue()).result("20s") == "handled"
    assert len(tries) == 1
    assert handled == [("broken", "ConnectionError", "no answer")] * 2
    assert sql("select name, state from tenure.steps order by number") == [("broken", "failed"), ("note", "done")]


async def test_a_failure_among_other_tasks_is_tried_again_by_the_next_attempt(app, sql):
    tries = []

    async def broken() -> str:
        tries.append(1)
        if len(tries) == 1:
            raise ConnectionError("no answer")
        return "ok"

    async def fine() -> str:
        return "fine"

    async def other(ctx: WorkflowContext) -> str:
        await ctx.step("fine", fine)
        return await ctx.step("fine", fine)

    @app.workflow(retry=AT_ONCE)
    async def work(ctx: WorkflowContext) -> list[str]:
        results = await asyncio.gather(other(ctx), ctx.step("broken", broken), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return results

    async with serving(app):
        assert await (await work.enqueue()).result("20s") == ["fine", "ok"]
    assert len(tries) == 2
    assert sorted(names(sql)) == ["1/fine", "1/fine#2", "broken"]


async def test_a_handled_failure_is_recorded_also_if_tasks_go_on_after_it(app, sql):
    tries = []

    async def broken() -> None:
        tries.append(1)
        raise ConnectionError("no answer")

    async def fine(n: int) -> int:
        return n

    @app.workflow(retry=AT_ONCE)
    async def work(ctx: WorkflowContext) -> list[int]:
        with contextlib.suppress(StepFailed):
            await ctx.step("broken", broken)

        async def task(n: int) -> int:
            return await ctx.step("fine", fine, n)

        results = await asyncio.gather(task(1), task(2))
        if ctx.attempt == 1:
            raise ValueError("not yet")
        return results

    async with serving(app):
        assert await (await work.enqueue()).result("20s") == [1, 2]
    assert len(tries) == 1
    assert names(sql) == ["broken", "1/fine", "2/fine"]


async def test_a_step_that_takes_too_long_fails(app):
    async def slow() -> None:
        await asyncio.sleep(60)

    @app.workflow(max_attempts=1)
    async def work(ctx: WorkflowContext) -> str:
        try:
            await ctx.step("slow", slow, timeout="50ms")
        except StepFailed as error:
            return str(error.error_type)
        return "in time"

    async with serving(app):
        assert await (await work.enqueue()).result("20s") == "TimeoutError"


async def test_a_decorated_function_is_a_step_in_a_workflow_and_a_call_elsewhere(app, sql):
    @app.step
    async def charge(amount: int, *, currency: str = "EUR") -> str:
        return f"{amount} {currency}"

    @app.step(name="pack it", retry=2)
    def pack(what: str) -> str:
        return f"packed {what}"

    @app.step
    async def outer(amount: int) -> str:
        return "inner " + await charge(amount)

    @app.workflow
    async def order(amount: int) -> list[str]:
        return [await charge(amount, currency="USD"), await pack("it"), await outer(7)]

    async with serving(app):
        assert await (await order.enqueue(5)).result("20s") == ["5 USD", "packed it", "inner 7 EUR"]
    assert names(sql) == ["charge", "pack it", "outer"]
    assert await charge(1) == "1 EUR"
    assert await pack("a box") == "packed a box"


async def test_steps_of_several_tasks_keep_their_names_whichever_comes_first(app, sql):
    ran = []
    fast_is_recorded = asyncio.Event()

    async def fetch(url: str) -> str:
        if url == "slow":
            await fast_is_recorded.wait()
        ran.append(url)
        return f"page of {url}"

    async def store(page: str) -> str:
        ran.append(page)
        return f"stored {page}"

    async def one(ctx: WorkflowContext, url: str) -> str:
        stored = await ctx.step("store", store, await ctx.step("fetch", fetch, url))
        fast_is_recorded.set()
        return stored

    @app.workflow(retry=AT_ONCE)
    async def crawl(ctx: WorkflowContext) -> list[str]:
        stored = await asyncio.gather(one(ctx, "slow"), one(ctx, "fast"))
        if ctx.attempt == 1:
            raise ValueError("not yet")
        return stored

    async with serving(app):
        assert await (await crawl.enqueue()).result("20s") == ["stored page of slow", "stored page of fast"]
    assert ran == ["fast", "page of fast", "slow", "page of slow"]
    assert names(sql) == ["2/fetch", "2/store", "1/fetch", "1/store"]


async def test_values_are_the_same_in_every_run(app):
    seen = []

    async def nothing() -> None: ...

    @app.workflow(retry=AT_ONCE)
    async def work(ctx: WorkflowContext) -> None:
        seen.append((ctx.now(), ctx.now(), ctx.random(), ctx.random(), ctx.uuid(), ctx.uuid()))
        await ctx.step("nothing", nothing)
        if ctx.attempt < 3:
            raise ValueError("not yet")

    async with serving(app):
        await (await work.enqueue()).result("20s")
    assert seen[0] == seen[1] == seen[2]
    assert len(set(seen[0])) == 6
    assert isinstance(seen[0][4], UUID)


async def test_a_step_inside_of_a_step_is_refused(app):
    async def inner() -> None: ...

    @app.workflow(max_attempts=1)
    async def work(ctx: WorkflowContext) -> None:
        async def outer() -> None:
            await ctx.step("inner", inner)

        await ctx.step("outer", outer)

    async with serving(app):
        with pytest.raises(JobFailed, match="'inner' is called inside of a step"):
            await (await work.enqueue()).result("20s")


@pytest.mark.parametrize("option", ["run_in", "atomic", "lease"])
def test_options_that_belong_to_steps_are_refused(app, option):
    with pytest.raises(ConfigError, match=f"no option '{option}'"):

        @app.workflow(**{option: "x"})
        async def work() -> None: ...


def test_a_plain_function_is_refused(app):
    with pytest.raises(ConfigError, match="async def"):

        @app.workflow
        def work() -> None: ...


async def test_the_context_may_be_annotated_as_that_of_any_job(app):
    @app.workflow
    async def work(ctx: Context, n: int) -> int:
        return await ctx.step("double", lambda: 2 * n)

    async with serving(app):
        assert await (await work.enqueue(4)).result("20s") == 8


async def test_the_first_run_gets_a_result_in_the_form_in_which_later_runs_get_it(app, sql):
    """PostgreSQL stores members of objects in another order, and numbers without exponents."""
    done: list[str] = []

    async def load() -> dict[str, Any]:
        return {"zebra": 1, "ab": {"zz": 1.5, "b": -0.0}, "ä": [1e23, {"y": 1e-7, "x": 12}], "b": 3}

    async def handle(name: str) -> str:
        if len(done) == 1 and "failed" not in done:
            done.append("failed")
            raise ConnectionError("no answer")
        done.append(name)
        return name

    seen: list[str] = []

    @app.workflow(retry=AT_ONCE)
    async def work(ctx: WorkflowContext) -> list[str]:
        loaded = await ctx.step("load", load)
        seen.append(repr(loaded))
        return [await ctx.step("handle", handle, name) for name in loaded]

    async with serving(app):
        assert await (await work.enqueue()).result("20s") == ["b", "ab", "ä", "zebra"]
    assert sorted(done) == ["ab", "b", "failed", "zebra", "ä"]
    assert len(seen) == 2
    assert seen[0] == seen[1]


async def test_a_status_that_is_set_twice_at_once_stops_nothing(app, sql):
    async def note(text: str) -> str:
        return text

    @app.workflow(retry=AT_ONCE)
    async def work(ctx: WorkflowContext) -> list[str]:
        now = ctx.now()
        ctx.set_status("first")
        ctx.set_status("second")
        noted = await ctx.step("note", note, now.isoformat())
        if ctx.attempt == 1:
            raise ValueError("once more")
        return [now.isoformat(), noted]

    async with serving(app):
        handle = await work.enqueue()
        now, noted = await handle.result("20s")
        assert now == noted
        assert await handle.query() == "second"


async def test_a_value_is_kept_although_the_result_of_the_next_step_is_refused(app, sql):
    sql("""create or replace function public.refuse() returns trigger language plpgsql as
        $$ begin raise exception 'not this one'; end $$""")
    sql("""create trigger refuse before insert on tenure.steps for each row
        when (new.name = 'refused' and new.state = 'done') execute function public.refuse()""")

    async def note(text: str) -> str:
        return text

    @app.workflow(retry=AT_ONCE)
    async def work(ctx: WorkflowContext) -> list[str]:
        now = ctx.now().isoformat()
        with contextlib.suppress(StepFailed):
            await ctx.step("refused", note, now)
        noted = await ctx.step("note", note, now)
        if ctx.attempt == 1:
            raise ValueError("once more")
        return [now, noted]

    try:
        async with serving(app):
            now, noted = await (await work.enqueue()).result("20s")
            assert now == noted
    finally:
        sql("drop trigger refuse on tenure.steps")


# Of one session: claims take this lock as well, for a moment.
HOLDS = "select 1 from pg_locks where mode = 'RowShareLock' and relation = 'tenure.jobs'::regclass and pid = %s"


async def test_a_locked_row_delays_no_step_of_other_workflows(app, sql, dsn, monkeypatch):
    monkeypatch.setattr(step_writer, "backoff", lambda _failures: 600.0)
    locked = await psycopg.AsyncConnection.connect(dsn)

    async def lock(job_id: UUID) -> None:
        await locked.execute("select 1 from tenure.jobs where id = %s for update", [job_id])

    async def count(n: int) -> int:
        return n

    @app.workflow
    async def locks(ctx: WorkflowContext) -> None:
        await ctx.step("lock", lock, ctx.job_id)

    @app.workflow
    async def counts(ctx: WorkflowContext) -> int:
        return sum([await ctx.step("count", count, n) for n in range(3)])

    async with serving(app):
        await locks.enqueue()
        await until(lambda: sql(HOLDS, locked.info.backend_pid))
        assert await (await counts.enqueue()).result("20s") == 3
        await locked.close()


async def test_a_step_whose_row_was_locked_is_stored_later(app, sql, dsn):
    async def lock(job_id: UUID) -> None:
        await locked.execute("select 1 from tenure.jobs where id = %s for update", [job_id])

    @app.workflow
    async def locks(ctx: WorkflowContext) -> str:
        await ctx.step("lock", lock, ctx.job_id)
        return "done"

    async with serving(app), await psycopg.AsyncConnection.connect(dsn) as locked:
        handle = await locks.enqueue()
        await until(lambda: sql(HOLDS, locked.info.backend_pid))
        await locked.rollback()
        assert await handle.result("20s") == "done"
