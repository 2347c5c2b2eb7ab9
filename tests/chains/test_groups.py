"""Groups: `app.gather()` and `app.map()`."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from tenure import ConfigError, Context, JobCanceled, JobFailed, NotPossible, ResultTimeout, Retry, Tenure
from tenure.client.client import Client
from tenure.flow import grouping
from tenure.store import chains, jobs
from tenure.store.jobs import FinishedRuns
from tenure.store.link import Link
from tests.waiting import until


def define(app: Tenure) -> tuple[Any, Any]:
    @app.job(retry=Retry(max_attempts=1))
    async def double(n: int) -> int:
        if n < 0:
            raise ValueError(f"{n} is negative")
        return 2 * n

    @app.job
    async def total(ctx: Context) -> int:
        [results] = ctx.blockers
        return sum(results)

    return double, total


async def test_results_are_in_order_and_a_callback_gets_them(app):
    double, total = define(app)
    async with app.running():
        group = await app.gather([double.call(n) for n in range(20)])
        callback = await total.using(after=[group]).enqueue()
        assert await group.results("30s") == [2 * n for n in range(20)]
        assert await callback.result("30s") == 380
        progress = await group.progress()
    assert (progress.total, progress.ended, progress.open, progress.failed) == (20, 20, False, None)
    assert (await group.status()).state == "completed"


async def test_groups_of_groups_and_jobs_that_were_enqueued_before(app):
    double, _ = define(app)
    async with app.running():
        inner = await app.gather([double.call(1), double.call(2)])
        earlier = await double.enqueue(5)
        outer = await app.gather([inner, double.call(3), earlier])
        assert await outer.results("30s") == [[2, 4], 6, 10]


async def test_the_first_failure_is_raised_when_all_have_ended(app):
    double, _ = define(app)
    async with app.running():
        group = await app.gather([double.call(n) for n in (1, -2, 3)])
        with pytest.raises(JobFailed, match="-2 is negative"):
            await group.results("30s")
        results = await group.results(return_exceptions=True)
        assert [type(result) for result in results] == [int, JobFailed, int]
        assert (await group.status()).state == "failed"
        with pytest.raises(JobFailed, match="did not complete"):
            await group.handle.result()


async def test_an_empty_group_is_written_by_one_statement(app, database):
    await app.gather([])
    assert database.sql("select total, missing, open from tenure.blocked") == [(0, 0, False)]


async def test_an_empty_group_is_complete(app, database):
    async with app.running():
        assert await (await app.gather([])).results("30s") == []
        with database.connection.transaction():
            group = app.gather_sync([], conn=database.connection)
        assert await group.results("30s") == []


def test_without_an_event_loop_and_in_the_callers_transaction(app, database):
    double, _ = define(app)
    with pytest.raises(ZeroDivisionError), database.connection.transaction():
        app.gather_sync([double.call(1)], conn=database.connection)
        1 / 0  # noqa: B018
    assert database.sql("select count(*) from tenure.jobs") == [(0,)]
    group = app.gather_sync([double.call(1), double.call(2)])
    assert (group.progress_sync().total, group.progress_sync().ended) == (2, 0)
    with pytest.raises(ResultTimeout):
        group.results_sync(0.05)
    assert group.cancel_sync("not needed") == 2
    with pytest.raises(JobCanceled, match="not needed"):
        group.results_sync()
    app.close_sync()


async def test_members_with_keys_are_refused(app):
    double, _ = define(app)
    with pytest.raises(ConfigError, match="enqueue it first, and pass its handle"):
        await app.gather([double.using(key="k").call(1)])
    with pytest.raises(ConfigError, match="neither a call nor a handle"):
        await app.gather([3])  # type: ignore[list-item]
    with pytest.raises(ConfigError, match="a single call"):
        await app.gather(double.call(1))  # type: ignore[arg-type]


async def test_members_need_no_arming_statement(app, database):
    """They have the flag from the start: no row of a member is changed by the resolver."""
    double, _ = define(app)
    await app.gather([double.call(n) for n in range(5)])
    assert database.sql("select count(*) from tenure.jobs where dependants") == [(5,)]


async def test_a_million_would_be_written_in_chunks(app, database, monkeypatch):
    monkeypatch.setattr(grouping, "CHUNK", 7)
    double, total = define(app)
    drawn = 0

    def items() -> Iterator[int]:
        nonlocal drawn
        for n in range(50):
            drawn += 1
            # What was drawn before is written: only one chunk is in memory.
            [(written,)] = database.sql("select count(*) from tenure.all_jobs where kind = 'double'")
            assert drawn - written <= 8
            yield n

    async with app.running():
        group = await app.map(double, items())
        assert await group.results("30s") == [2 * n for n in range(50)]
        assert [result async for result in group.iterate()] == [2 * n for n in range(50)]
        assert await (await total.using(after=[group]).enqueue()).result("30s") == sum(2 * n for n in range(50))


async def test_an_interrupted_map_stays_open_and_is_continued_by_its_key(app, monkeypatch):
    monkeypatch.setattr(grouping, "CHUNK", 10)
    double, _ = define(app)

    def breaks() -> Iterator[int]:
        yield from range(35)
        raise KeyboardInterrupt

    async with app.running():
        with pytest.raises(KeyboardInterrupt):
            await app.map(double, breaks(), key="today")
        again = await app.map(double, range(40), key="today")
        assert again.existed
        assert await again.results("30s") == [2 * n for n in range(40)]
        # It is closed now: the same call gives the same group.
        assert (await app.map(double, range(99), key="today")).id == again.id
        assert (await again.progress()).total == 40


async def test_an_open_group_is_explained(app, monkeypatch):
    monkeypatch.setattr(grouping, "CHUNK", 2)
    double, _ = define(app)

    def breaks() -> Iterator[int]:
        yield from range(3)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await app.map(double, breaks(), key="k")
    [group] = (await app.client().list(kind="tenure.group")).jobs
    reasons = {reason.code: reason.text for reason in (await app.client().explain(group.id)).reasons}
    # It needs no worker of its own.
    assert not [code for code in reasons if code.startswith("no_worker")]
    assert "2 members" in reasons["open_group"]


async def test_two_calls_that_add_to_the_same_group_do_not_mix(app, database, monkeypatch):
    monkeypatch.setattr(grouping, "CHUNK", 2)
    double, _ = define(app)

    def other_call() -> Iterator[int]:
        yield from range(2)
        # Meanwhile another process has added a chunk.
        database.sql("update tenure.blocked set total = total + 2, missing = missing + 2")
        yield from range(2, 6)

    with pytest.raises(NotPossible, match="another call adds members"):
        await app.map(double, other_call(), key="k")


async def test_a_lost_answer_adds_no_chunk_twice(app, database, monkeypatch):
    monkeypatch.setattr(grouping, "CHUNK", 5)
    double, _ = define(app)
    await app.enqueue("elsewhere")  # the connection exists
    broken = 0
    run = Link._run

    async def breaking(link: Link, cursor: Any, query: Any) -> Any:
        nonlocal broken
        answer = await run(link, cursor, query)
        if query.name == "blockers/add_members" and broken < 2:
            broken += 1
            if broken == 2:  # the first time before the commit, the second time after it
                cursor.connection.pgconn.exec_(b"commit")
            database.sql("select pg_terminate_backend(%s)", cursor.connection.info.backend_pid)
        return answer

    monkeypatch.setattr(Link, "_run", breaking)
    group = await app.map(double, range(12))
    assert (await group.progress()).total == 12
    assert database.sql("select count(*) from tenure.jobs where kind = 'double'") == [(12,)]


async def test_canceling_a_group_cancels_its_live_members(app, database):
    double, _ = define(app)
    group = await app.gather([double.using(delay="1h").call(n) for n in range(3)])
    assert await group.cancel("enough", by="ann") == 3
    assert database.sql("select state, count(*) from tenure.history group by 1") == [("canceled", 4)]
    async with app.running():
        await until(lambda: database.sql("select count(*) from tenure.blocked where missing = 0") == [(0,)])


async def test_canceling_a_group_cancels_the_members_of_groups_in_it(app, database):
    double, _ = define(app)
    inner = await app.gather([double.using(delay="1h").call(n) for n in range(2)])
    middle = await app.gather([inner, double.using(delay="1h").call(2)])
    outer = await app.gather([middle])
    assert await app.group(str(outer.id)).cancel("enough") == 5
    assert database.sql("select count(*) from tenure.jobs") == [(0,)]


async def test_canceling_a_group_again_reaches_what_an_interrupted_call_has_left(app, database):
    double, _ = define(app)
    inner = await app.gather([double.using(delay="1h").call(1)])
    outer = await app.gather([inner])
    async with app.running():
        await app.client().cancel(outer.id, inner.id)
        await until(lambda: database.sql("select met from tenure.blockers where job_id = %s", outer.id), is_=[(True,)])
    assert await outer.cancel() == 1
    assert database.sql("select count(*) from tenure.jobs") == [(0,)]


async def test_a_group_is_found_by_its_id_in_another_process(app):
    double, _ = define(app)
    group = await app.gather([double.call(n) for n in range(2)])
    async with app.running():
        assert await app.group(group.id).results("30s") == [0, 2]
        assert (await app.group(str(group.id)).progress()).ended == 2


async def test_a_member_that_was_replayed_after_the_group_had_failed_counts_with_its_result(app):
    broken = True

    @app.job(retry=Retry(max_attempts=1))
    async def flaky(n: int) -> int:
        if broken and n == 1:
            raise ValueError("not yet")
        return n

    async with app.running():
        group = await app.gather([flaky.call(n) for n in range(3)])
        with pytest.raises(JobFailed, match="not yet"):
            await group.results("30s")
        broken = False
        [dead] = (await app.client().list(state="dead_letter")).jobs
        await app.client().replay(dead.id)

        async def results() -> list[int] | None:
            try:
                return await group.results()
            except JobFailed:
                return None

        await until(results, is_=[0, 1, 2])


async def test_no_members_are_added_to_a_group_that_was_canceled(app, database, monkeypatch):
    monkeypatch.setattr(grouping, "CHUNK", 2)
    double, _ = define(app)

    def canceled_meanwhile() -> Iterator[int]:
        yield from range(2)
        [(group,)] = database.sql("select id from tenure.jobs where kind = 'tenure.group'")
        database.run(jobs.cancel([group], error="canceled"))
        yield from range(2, 6)

    with pytest.raises(NotPossible, match="was canceled"):
        await app.map(double, canceled_meanwhile(), key="k")
    assert database.sql("select count(*) from tenure.jobs where kind = 'double'") == [(2,)]


async def test_a_member_that_continues_while_the_group_is_canceled_is_canceled_too(app, database, monkeypatch):
    @app.job
    async def work() -> None: ...

    group = await app.gather([work.call()])
    claim = database.claim(database.worker())
    cancel = Client.cancel

    async def continue_first(client: Client, *ids: Any, **more: Any) -> int:
        if str(ids[0]) == claim.ids[0]:
            outcomes = {claim.ids[0]: [claim.id, {"kind": "work", "id": str(uuid4())}]}
            runs = FinishedRuns(f"{{{claim.ids[0]}}}", f"{{{claim.id}}}", json.dumps(outcomes))
            assert database.run(chains.continue_jobs(runs))
        return await cancel(client, *ids, **more)

    monkeypatch.setattr(Client, "cancel", continue_first)
    assert await group.cancel() == 1
    assert database.sql("select count(*) from tenure.jobs") == [(0,)]


async def test_map_sync_reads_its_items_in_the_callers_thread(app):
    """They may come from other synchronous calls: in the thread of the client's event loop, these would wait for themselves."""

    @app.job
    async def double(n: int) -> int:
        return 2 * n

    threads = set()

    def items() -> Iterator[int]:
        for n in range(3):
            threads.add(threading.get_ident())
            assert double.enqueue_sync(n).status_sync().kind == "double"
            yield n

    def map_all() -> tuple[int, list[int]]:
        group = app.map_sync(double, items())
        return threading.get_ident(), list(group.iterate_sync("30s"))

    async with app.running():
        caller, results = await asyncio.wait_for(asyncio.to_thread(map_all), 30)
    assert (threads, results) == ({caller}, [0, 2, 4])


async def test_a_map_of_large_inputs_is_split_by_their_size(app, monkeypatch, database):
    monkeypatch.setattr(grouping, "CHUNK_BYTES", 10_000)

    @app.job
    async def length(text: str) -> int:
        return len(text)

    sizes = [1, 9_000, 9_000, 2, 3, 50_000, 4]
    group = await app.map(length, ("x" * size for size in sizes))
    found = database.sql("select xmin::text, length(input ->> 'text') from tenure.jobs where kind = 'length' order by id")
    assert [size for _, size in found] == sizes
    assert len({transaction for transaction, _ in found}) == 3
    async with app.running():
        assert await group.results("30s") == sizes
