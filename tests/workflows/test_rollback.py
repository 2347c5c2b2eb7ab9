"""Undoing what a workflow has done."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tenure import Cancel, Fail, JobCanceled, JobFailed, Retry, WorkflowContext
from tenure.store import steps
from tests.waiting import until
from tests.worker.serving import serving
from tests.workflows.test_sleep import come_true, suspended

AT_ONCE = Retry(max_attempts=2, initial="10ms", max_backoff="10ms", jitter=False)


class Shop:
    """Notes what its steps did."""

    def __init__(self) -> None:
        self.did: list[str] = []
        self.broken: dict[str, int] = {}
        """By step: how often it still fails."""

    async def do(self, what: str) -> str:
        if self.broken.get(what, 0) > 0:
            self.broken[what] -= 1
            raise ConnectionError(f"{what} is broken")
        self.did.append(what)
        return what


@pytest.fixture
def shop(app: Any) -> Shop:
    shop = Shop()

    async def refund(what: str) -> None:
        await shop.do(f"undo {what}")

    @app.workflow(retry=AT_ONCE)
    async def order(ctx: WorkflowContext, ending: str = "") -> str:
        for what in ("reserve", "pay"):
            await ctx.on_rollback(refund, what, retry=Retry(max_attempts=3, initial="1h", max_backoff="1h", jitter=False))
            await ctx.step(what, shop.do, what)
        if ending == "wait":
            await ctx.sleep("rest", "1h")
        if ending == "fail":
            raise Fail("out of stock")
        if ending == "cancel":
            return Cancel("not needed")
        return await ctx.step("ship", shop.do, "ship")

    return shop


async def test_a_workflow_that_completes_undoes_nothing(app, shop):
    async with serving(app):
        assert await (await app.jobs["order"].enqueue()).result("20s") == "ship"
    assert shop.did == ["reserve", "pay", "ship"]


async def test_all_is_undone_in_reverse_order_after_the_last_attempt(app, shop, sql):
    shop.broken = {"ship": 99}
    async with serving(app):
        handle = await app.jobs["order"].enqueue()
        with pytest.raises(JobFailed, match="ship is broken") as failed:
            await handle.result("20s")
    assert failed.value.state == "failed"
    assert shop.did == ["reserve", "pay", "undo pay", "undo reserve"]
    assert (await handle.status()).attempt == 2
    assert sql("select name from tenure.steps where what = 'undo' order by number") == [
        ("(undo) undo refund#2",),
        ("(undo) undo refund",),
    ]


async def test_an_attempt_that_is_followed_by_another_undoes_nothing(app, shop):
    shop.broken = {"ship": 1}
    async with serving(app):
        assert await (await app.jobs["order"].enqueue()).result("20s") == "ship"
    assert shop.did == ["reserve", "pay", "ship"]


async def test_fail_and_cancel_in_the_workflow_undo_as_well(app, shop):
    async with serving(app):
        with pytest.raises(JobFailed, match="out of stock"):
            await (await app.jobs["order"].enqueue("fail")).result("20s")
        with pytest.raises(JobCanceled, match="not needed"):
            await (await app.jobs["order"].enqueue("cancel")).result("20s")
    assert shop.did == ["reserve", "pay", "undo pay", "undo reserve"] * 2


async def test_a_rollback_waits_for_the_next_try_of_an_undo_and_does_not_go_back_to_the_workflow(app, shop, sql):
    shop.broken = {"ship": 99, "undo pay": 1}
    async with serving(app):
        handle = await app.jobs["order"].enqueue()
        await suspended(sql)
        assert sql("select name, state from tenure.steps where what in ('rollback', 'undo') order by number") == [
            ("(rollback)", "done"),
            ("(undo) undo refund#2", "retry"),
        ]
        shop.broken["ship"] = 0
        come_true(sql)
        with pytest.raises(JobFailed, match="ship is broken"):
            await handle.result("20s")
    assert shop.did == ["reserve", "pay", "undo pay", "undo reserve"]


async def test_a_canceled_workflow_runs_once_more_to_undo_what_it_has_done(app, shop, sql):
    async with serving(app):
        handle = await app.jobs["order"].enqueue("wait")
        await suspended(sql)
        assert await handle.cancel("customer left", by="ann")
        with pytest.raises(JobCanceled, match="canceled by ann: customer left"):
            await handle.result("20s")
    assert shop.did == ["reserve", "pay", "undo pay", "undo reserve"]
    assert sql("select what, by from tenure.incidents order by at")[0] == ("canceled", "ann")


async def test_a_second_cancellation_drops_no_undo(app, shop, sql):
    shop.broken = {"undo pay": 1}
    async with serving(app):
        handle = await app.jobs["order"].enqueue("wait")
        await suspended(sql)
        assert await handle.cancel("customer left")
        await until(lambda: sql("select 1 from tenure.steps where what = 'undo' and state = 'retry'"))
        await suspended(sql)
        assert not await handle.cancel()
        assert not await app.client().cancel(handle.id)
        assert await app.client().cancel_all(kind="order") == 0
        assert (await app.workflows.get(handle.id)).rolls_back
        come_true(sql)
        with pytest.raises(JobCanceled, match="customer left"):
            await handle.result("20s")
    assert shop.did == ["reserve", "pay", "undo pay", "undo reserve"]


async def test_a_forced_cancellation_ends_a_rollback_at_once(app, shop, sql):
    shop.broken = {"undo pay": 1}
    async with serving(app):
        handle = await app.jobs["order"].enqueue("wait")
        await suspended(sql)
        assert await handle.cancel()
        await until(lambda: sql("select 1 from tenure.steps where what = 'undo' and state = 'retry'"))
        await suspended(sql)
        assert await handle.cancel("give up", force=True)
        with pytest.raises(JobCanceled, match="give up"):
            await handle.result("20s")
        found = await app.workflows.get(handle.id)
    assert (found.rolls_back, found.to_undo) == (False, ("undo refund", "undo refund#2"))
    assert shop.did == ["reserve", "pay"]


async def test_a_canceled_workflow_that_is_retried_begins_again(app, shop, sql):
    async with serving(app):
        handle = await app.jobs["order"].enqueue("wait")
        await suspended(sql)
        await handle.cancel()
        with pytest.raises(JobCanceled):
            await handle.result("20s")
        shop.did.clear()
        again = await handle.retry()
        await suspended(sql)
        assert shop.did == ["reserve", "pay"]
        come_true(sql)
        assert await again.result("20s") == "ship"
    assert shop.did == ["reserve", "pay", "ship"]


async def test_a_workflow_is_undone_also_if_its_code_adds_a_value_while_it_is_replayed(app, sql):
    did = []

    async def undo() -> None:
        did.append("undone")

    @app.workflow
    async def order(ctx: WorkflowContext) -> None:
        async def rest() -> None:
            await ctx.sleep("rest", "1h")

        async def wait() -> None:
            await ctx.sleep("wait", "1h")
            ctx.now()

        await ctx.on_rollback(undo)
        await ctx.gather(rest(), wait())

    async with serving(app):
        handle = await order.enqueue()
        await suspended(sql)
        sql("update tenure.steps set due_at = clock_timestamp() where name = '2/wait'")
        await handle.cancel()
        with pytest.raises(JobCanceled):
            await handle.result("20s")
    assert did == ["undone"]


async def test_a_running_workflow_is_aborted_and_undone(app, sql):
    did = []
    running = asyncio.Event()

    async def undo() -> None:
        did.append("undone")

    async def hang() -> None:
        running.set()
        await asyncio.sleep(60)

    @app.workflow
    async def order(ctx: WorkflowContext) -> None:
        await ctx.on_rollback(undo)
        await ctx.step("hang", hang)

    async with serving(app):
        handle = await order.enqueue()
        await running.wait()
        assert await handle.cancel()
        with pytest.raises(JobCanceled):
            await handle.result("20s")
        assert did == ["undone"]
        assert not await handle.cancel()


async def test_a_workflow_that_exceeds_its_time_limit_in_its_last_attempt_is_undone(app):
    did = []

    async def undo() -> None:
        did.append("undone")

    async def hang() -> None:
        await asyncio.sleep(60)

    @app.workflow(timeout="200ms", max_attempts=1)
    async def order(ctx: WorkflowContext) -> None:
        await ctx.on_rollback(undo)
        await ctx.step("hang", hang)

    async with serving(app):
        with pytest.raises(JobFailed, match="timed out"):
            await (await order.enqueue()).result("20s")
    assert did == ["undone"]


async def test_an_undo_that_fails_for_good_leaves_a_dead_letter_and_a_replay_continues_with_it(app, sql):
    did = []
    broken = [True]

    async def first() -> None:
        did.append("first")

    async def second() -> None:
        if broken[0]:
            raise ConnectionError("still broken")
        did.append("second")

    @app.workflow(max_attempts=1)
    async def order(ctx: WorkflowContext) -> None:
        await ctx.on_rollback(first)
        await ctx.on_rollback(second, retry=1)
        raise ValueError("no")

    async with serving(app):
        handle = await order.enqueue()
        with pytest.raises(JobFailed, match="still broken"):
            await handle.result("20s")
        assert (await handle.status()).state == "dead_letter"
        broken[0] = False
        await app.client().replay(handle.id)
        with pytest.raises(JobFailed, match="ValueError: no"):
            await handle.result("20s")
    assert did == ["second", "first"]


async def test_a_dead_letter_that_is_canceled_has_all_its_attempts_again_to_undo_what_it_has_done(app, sql):
    did = []
    broken = [True]

    async def undo() -> None:
        if broken[0]:
            raise ConnectionError("still broken")
        did.append("undone")

    @app.workflow(max_attempts=1)
    async def order(ctx: WorkflowContext) -> None:
        await ctx.on_rollback(undo, retry=1)
        raise ValueError("no")

    async with serving(app):
        handle = await order.enqueue()
        await until(lambda: sql("select state from tenure.jobs"), is_=[("dead_letter",)])
        broken[0] = False
        assert await handle.cancel()
        with pytest.raises(JobFailed, match="ValueError: no"):
            await handle.result("20s")
    assert did == ["undone"]
    status = await handle.status()
    assert (status.attempt, status.max_attempts) == (1, 1)


async def test_tasks_that_a_failed_workflow_leaves_behind_are_ended(app):
    ended = []

    async def slow() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(True)

    async def broken() -> None:
        raise ConnectionError("no")

    @app.workflow(max_attempts=1)
    async def work(ctx: WorkflowContext) -> None:
        async def inner() -> None:
            await ctx.step("slow", slow)

        await asyncio.gather(inner(), ctx.step("broken", broken))

    async with serving(app):
        with pytest.raises(JobFailed):
            await (await work.enqueue()).result("20s")
        await until(lambda: ended, is_=[True])


async def test_what_parallel_tasks_have_registered_is_undone_also_if_another_task_has_not_begun(app, sql):
    undone: list[str] = []
    begun = asyncio.Event()

    async def undo(what: str) -> None:
        undone.append(what)

    async def never() -> None:
        begun.set()
        await asyncio.Event().wait()

    async def one(ctx: WorkflowContext) -> None:
        await ctx.step("never", never)

    async def other(ctx: WorkflowContext) -> None:
        await asyncio.sleep(0)
        await ctx.on_rollback(undo, "other")

    @app.workflow
    async def trip(ctx: WorkflowContext) -> None:
        await ctx.gather(one(ctx), other(ctx))

    async with serving(app):
        handle = await trip.enqueue()
        await until(begun.is_set)
        await until(lambda: sql("select count(*) from tenure.steps where what = 'on_rollback'"), is_=[(1,)])
        assert await handle.cancel()
        with pytest.raises(JobCanceled):
            await handle.result("20s")
    assert undone == ["other"]


async def test_a_rollback_is_held_if_the_code_does_not_reach_all_that_is_registered(app, sql):
    undone: list[str] = []
    names = ["flight", "hotel"]

    async def undo(what: str) -> None:
        undone.append(what)

    async def book(what: str) -> str:
        return what

    @app.workflow
    async def trip(ctx: WorkflowContext) -> None:
        for what in names:
            await ctx.step(f"book {what}", book, what)
            await ctx.on_rollback(undo, what)
        await ctx.sleep("rest", "1h")

    async with serving(app):
        handle = await trip.enqueue()
        await suspended(sql)
        names[0] = "train"  # a deploy
        assert await handle.cancel("not needed")
        await until(lambda: sql("select 1 from tenure.jobs where system ? 'held'"))
        assert "does not reach 'undo undo', 'undo undo#2'" in str((await app.workflows.get(handle.id)).held)
        assert undone == []
        names[0] = "flight"
        await app.workflows.resume(handle.id)
        with pytest.raises(JobCanceled, match="not needed"):
            await handle.result("20s")
    assert undone == ["hotel", "flight"]


def test_something_to_undo_is_registered_although_the_row_of_the_job_changes_meanwhile(database, other, sql):
    """The resolver marks a workflow when another job begins to wait for it."""
    [job] = database.enqueue({})
    claim = database.claim(database.worker())
    in_line = (
        "select count(*) from pg_stat_activity"
        " where datname = current_database() and wait_event_type = 'Lock' and query like '%on_rollback%'"
    )
    with ThreadPoolExecutor(1) as threads:
        with other.connection.transaction():
            other.sql("update tenure.jobs set dependants = true where id = %s", job)
            registering = threads.submit(database.run, steps.record_rollback(job, claim.id, "undo", 1))
            while sql(in_line) == [(0,)]:
                assert not registering.done()
        assert registering.result(20) == [(job, claim.id)]
    assert other.sql("select system ? 'undo', dependants from tenure.jobs") == [(True, True)]
    assert other.sql("select name from tenure.steps") == [("undo",)]


async def test_a_workflow_that_waits_for_its_own_child_in_a_circle_is_rolled_back(app, shop, sql):
    """The child waits for the workflow that called it: neither can ever continue."""

    async def undo() -> None:
        await shop.do("undo")

    @app.job
    async def child() -> None: ...

    @app.workflow(retry=AT_ONCE)
    async def circle(ctx: WorkflowContext) -> None:
        await ctx.on_rollback(undo)
        await ctx.step("book", shop.do, "book")
        try:
            await ctx.call(child.using(after=[ctx.job_id]))
        finally:
            shop.did.append("left")

    async with serving(app):
        handle = await circle.enqueue()
        with pytest.raises(JobFailed, match="it can never run: it waits for chain") as failed:
            await handle.result("20s")
        assert failed.value.state == "failed"
        [(waited,)] = sql("select id from tenure.all_jobs where kind = 'child'")
        await until(lambda: sql("select state from tenure.all_jobs where kind = 'child'") == [("canceled",)])
    assert [one for one in shop.did if one != "left"] == ["book", "undo"]
    assert f"waits for chain {waited}" in (await handle.status()).error
    assert sql("select name from tenure.steps where what = 'undo'") == [("(undo) undo undo",)]


async def test_a_fork_whose_blocker_fails_undoes_what_it_has_kept(app, shop, sql):
    """A fork that keeps registrations is blocked by the chains of the old run. It is canceled before it runs, and undoes them."""

    async def undo() -> None:
        await shop.do("undo")

    @app.job(retry=Retry(max_attempts=1))
    async def fails() -> None:
        raise RuntimeError("broken")

    @app.workflow(retry=AT_ONCE)
    async def flow(ctx: WorkflowContext) -> None:
        await ctx.on_rollback(undo)
        await ctx.step("book", shop.do, "book")
        await ctx.step("pay", shop.do, "pay")

    async with serving(app):
        first = await fails.enqueue()
        handle = await flow.using(after=[first], on_blocker_failure="run").enqueue()
        await handle.result("20s")
        sql("update tenure.blocked set on_failure = 'cancel'")
        forked = await app.workflows.fork(handle.id, from_step="pay")
        with pytest.raises(JobCanceled, match=f"did not complete: chain {first.id}"):
            await forked.result("20s")
    assert shop.did == ["book", "pay", "undo"]
