"""`app.chains`: start, get, list, wait, complete and delete, with workers and without."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import pytest

from tenure import ConfigError, Context, Continue, InvalidOutput, JobCanceled, JobNotFound, NotPossible, RunLost, Tenure
from tenure.model.ids import uuid7
from tenure.store import chains, claims, jobs
from tests.waiting import until


def define(app: Tenure) -> tuple[Any, Any]:
    @app.job
    async def first(n: int) -> int | Continue[int]:
        return Continue(second, n) if n else 0

    @app.job(queue="people")
    async def second(n: int) -> int:
        return n + 1

    return first, second


async def test_a_chain_is_started_found_and_waited_for(app):
    first, _ = define(app)
    async with app.running(queues=["default", "people"]):
        handle = await app.chains.start(first, 3)
        assert await app.chains.wait(handle, timeout="30s") == 4
        many = await app.chains.start_many([first.call(n) for n in range(2)])
        assert [await app.chains.wait(one, "30s") for one in many] == [0, 2]
    chain = await app.chains.get(handle)
    assert (chain.id, chain.kind, chain.state, chain.output, chain.error) == (handle.id, "first", "completed", 4, None)
    assert [(link.number, link.job.kind, link.job.state) for link in chain.links] == [
        (1, "first", "completed"),
        (2, "second", "completed"),
    ]
    # By any of its links.
    assert (await app.chains.get(chain.last.id)).id == chain.id
    assert await app.chains.wait(chain.last.id) == 4
    assert chain.to_json()["links"][1]["job"]["kind"] == "second"


async def test_a_process_without_handlers_starts_completes_and_waits_by_name(dsn):
    bare = Tenure(dsn)
    handle = await bare.chains.start("somewhere", {"n": 1}, queue="far")
    await bare.chains.complete(handle, {"paid": True}, by="webhook")
    assert await bare.chains.wait(handle) == {"paid": True}
    assert (await bare.chains.get(handle)).state == "completed"
    report = await handle.report()
    assert any("webhook" in moment.text for moment in report.events)
    await bare.close()


def test_the_same_without_an_event_loop(dsn):
    bare = Tenure(dsn)
    chains = bare.chains
    handle = chains.start_sync("somewhere", {"n": 1})
    [other] = chains.start_many_sync([])[:1] or [chains.start_sync("somewhere")]
    assert chains.complete_sync(handle, 5) == handle.id
    assert chains.wait_sync(handle) == 5
    assert chains.get_sync(handle.id).output == 5
    assert {one.id for one in chains.list_sync().chains} == {handle.id, other.id}
    assert chains.delete_sync(handle, other) == 2
    bare.close_sync()


async def test_lists_show_chains_and_not_their_later_links(app):
    first, _ = define(app)
    async with app.running(queues=["default"]):  # no worker serves the queue of people
        handles = [await app.chains.start(first, n) for n in (0, 1, 2)]
        await until(lambda: _states(app, handles), is_=["completed", "pending", "pending"])
    page = await app.chains.list()
    assert [(one.id, one.kind, one.state, one.links) for one in page.chains] == [
        (handles[2].id, "first", "pending", 2),
        (handles[1].id, "first", "pending", 2),
        (handles[0].id, "first", "completed", 1),
    ]
    assert [one.id for one in (await app.chains.list(state="completed")).chains] == [handles[0].id]
    assert (await app.chains.list(kind="second")).chains == []


async def _states(app: Tenure, handles: list[Any]) -> list[str]:
    return [(await app.chains.get(handle)).state.value for handle in handles]


async def _links(app: Tenure, handle: Any) -> int:
    return len((await app.chains.get(handle)).links)


async def test_a_link_that_is_not_meant_for_a_worker_is_completed_by_a_person(app):
    first, _ = define(app)
    async with app.running(queues=["default"]):
        handle = await first.enqueue(1)
        await until(lambda: _links(app, handle), is_=2)
        waiting = asyncio.create_task(handle.result("30s"))
        link = await app.chains.complete(handle, 41, by="ann")
        assert await waiting == 41
    assert link != handle.id
    with pytest.raises(NotPossible, match="chain that has ended"):
        await app.chains.complete(handle, 42)
    with pytest.raises(JobNotFound):
        await app.chains.complete(uuid7(), 42)
    with pytest.raises(JobNotFound):
        await app.chains.get(uuid7())


async def test_the_output_is_checked_as_that_of_the_handler(app):
    _, second = define(app)
    handle = await second.enqueue(1)
    with pytest.raises(InvalidOutput):
        await app.chains.complete(handle, "text")
    assert (await handle.status()).state == "pending"


@pytest.mark.parametrize("how", ["complete", "delete"])
async def test_the_running_handler_is_aborted_and_its_error_is_dropped(app, database, how):
    started, reasons = asyncio.Event(), []

    @app.job
    async def runs(ctx: Context) -> str:
        started.set()
        try:
            await asyncio.sleep(60)
        finally:
            reasons.append(ctx.signal.reason)
            raise RuntimeError("not expected")

    lost: list[str] = []
    app.events.subscribe((RunLost,), lambda event: lost.append(event.reason))
    async with app.running():
        handle = await runs.enqueue()
        await started.wait()
        if how == "complete":
            await app.chains.complete(handle, "by hand")
            assert await handle.result("30s") == "by hand"
        else:
            assert await app.chains.delete(handle) == 1
        await until(lambda: reasons)
    assert reasons == lost == ["already_completed" if how == "complete" else "not_found"]
    assert database.sql("select count(*) from tenure.incidents where what not in ('completed')") == [(0,)]
    assert database.sql("select count(*) from tenure.jobs") == [(0,)]


async def test_completion_and_deletion_are_part_of_the_callers_transaction(app, database):
    _, second = define(app)
    handle, other = await second.enqueue(1), await second.enqueue(2)
    with pytest.raises(ZeroDivisionError), database.connection.transaction():
        app.chains.complete_sync(handle, 5, conn=database.connection)
        app.chains.delete_sync(other, conn=database.connection)
        1 / 0  # noqa: B018
    assert {(await handle.status()).state, (await other.status()).state} == {"pending"}
    with database.connection.transaction():
        app.chains.complete_sync(handle, 5, conn=database.connection)
        assert app.chains.delete_sync(other, conn=database.connection) == 1
    assert await handle.result("30s") == 5
    with pytest.raises(JobNotFound):
        await other.status()


async def test_a_chain_that_others_wait_for_is_deleted_only_with_them(app, database):
    _, second = define(app)
    handle = await second.enqueue(1)
    waiting = await second.using(after=[handle]).enqueue(2)
    last = await second.using(after=[waiting]).enqueue(3)
    with pytest.raises(NotPossible, match=f"other jobs wait for it .{waiting.id}"):
        await app.chains.delete(handle)
    assert (await handle.status()).state == "pending"
    assert await app.chains.delete(handle, cascade=True) == 1
    for gone in (handle, waiting, last):
        with pytest.raises(JobNotFound):
            await gone.status()
    assert [database.sql(f"select count(*) from tenure.{name}") for name in ("jobs", "blocked", "blockers")] == [[(0,)]] * 3


async def test_several_chains_that_wait_for_each_other_are_deleted_together(app):
    _, second = define(app)
    handle = await second.enqueue(1)
    waiting = await second.using(after=[handle]).enqueue(2)
    assert await app.chains.delete(handle, waiting) == 2
    assert await app.chains.delete(uuid7()) == 0


async def test_all_links_are_deleted(app, database):
    first, _ = define(app)
    async with app.running(queues=["default", "people"]):
        handle = await first.enqueue(1)
        await handle.result("30s")
    assert await app.chains.delete(handle) == 1
    assert database.sql("select count(*) from tenure.all_jobs") == [(0,)]


async def test_cancel_of_the_first_job_cancels_the_chain(app):
    first, _ = define(app)
    async with app.running(queues=["default"]):
        handle = await first.enqueue(1)
        await until(lambda: _states(app, [handle]), is_=["pending"])
        assert await handle.cancel("no longer wanted")
        with pytest.raises(JobCanceled, match="no longer wanted"):
            await handle.result("30s")
        assert not await handle.cancel()


async def test_blockers_are_shown_with_the_chain(app):
    _, second = define(app)
    done, open_ = await second.enqueue(1), await second.enqueue(2)
    waiting = await second.using(after=[done, open_]).enqueue(3)
    async with app.running(queues=["default"]):
        await app.chains.complete(done, 1)
        await until(lambda: _ended(app, waiting), is_=[True, False])
    [one, other] = (await app.chains.get(waiting)).links[0].blockers
    assert (one.chain_id, one.state, one.kind) == (done.id, "completed", "second")
    assert (other.chain_id, other.state) == (open_.id, None)


async def _ended(app: Tenure, handle: Any) -> list[bool]:
    return [blocker.ended for blocker in (await app.chains.get(handle)).links[0].blockers]


def test_a_completion_is_not_taken_for_that_of_the_run(database):
    """After a lost answer, a run asks whether its claim is in history."""
    [job_id] = database.enqueue({})
    claim = database.claim(database.worker())
    [row] = database.fetch(chains.complete({UUID(job_id): "1"}, by="ann"))
    assert (row.done, row.ran) == (True, True)
    assert database.fetch(jobs.find_settled(claim.outcomes())) == []
    assert [row.reason for row in database.fetch(claims.check(claim.outcomes()))] == ["already_completed"]


async def test_what_cannot_be_started_is_refused(app):
    with pytest.raises(ConfigError, match="not a job: pass a job"):
        await app.chains.start(print)  # type: ignore[call-overload]


async def test_reports_show_what_a_link_waited_for_and_what_followed_it(app):
    first, second = define(app)
    async with app.running(queues=["default", "people"]):
        handle = await first.enqueue(1)
        waiting = await second.using(after=[handle]).enqueue(2)
        await waiting.result("30s")
    told = [event.text for event in (await handle.report()).events]
    assert any("continued by job" in text for text in told)
    assert [event.what for event in (await waiting.report()).events][:2] == ["enqueued", "blocked"]
