"""What runs tell on their way: the latest progress, the last log lines, signs of life. Cheap, and only while they hold."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from types import SimpleNamespace

import pytest

from tenure import Aborted, Context, JobSettled, Tenure
from tenure.periodic import FOREVER
from tenure.store.faults import Refused
from tenure.store.link import Link
from tenure.worker.run.update_pace import GAP, UpdatePace
from tenure.worker.run.updates import RunUpdates, UpdateWriter
from tests.store.forged_jobs import take_over
from tests.waiting import until
from tests.worker.serving import serving

WAITS_FOR_LOCK = "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"

LEASE_EXTENDED = """
    select j.lease_until - c.at > interval '3.5 s' from tenure.jobs j join tenure.claims c on c.id = j.claim_id"""


@pytest.fixture
async def app(dsn):
    app = Tenure(dsn, workers_lease_timeout_seconds=3)
    yield app
    await app.close()


@pytest.fixture
def sent(monkeypatch):
    """How often each statement was sent."""
    fetch, names = Link.fetch, Counter()

    async def counted(self, query, **more):
        names[query.name] += 1
        rows = await fetch(self, query, **more)
        names[f"{query.name} answered"] += 1
        return rows

    monkeypatch.setattr(Link, "fetch", counted)
    return names


def lines_of(database, handle):
    rows = database.sql("select lines from tenure.logs where job_id = %s order by fence, first_line", handle.id)
    return [line for (lines,) in rows for line in lines]


@pytest.mark.parametrize("run_in", ["loop", "thread"])
async def test_the_latest_progress_always_arrives_and_costs_few_statements(app, database, sent, run_in):
    def work(ctx: Context) -> None:
        for n in range(1, 10_001):
            ctx.progress(n / 100, f"step {n}")

    async def work_async(ctx: Context) -> None:
        work(ctx)

    job = app.job(name="work", run_in=run_in)(work_async if run_in == "loop" else work)
    async with serving(app):
        began = time.monotonic()
        handle = await job.enqueue()
        await handle.result("30s")
        took = time.monotonic() - began
    progress = await handle.progress()
    assert (progress.percent, progress.message) == (100, "step 10000")
    # Two a second, one at once, one at the end.
    assert 1 <= sent["jobs/write_updates"] <= 2 * took + 2


def reporting(*, watched):
    run = SimpleNamespace(updates=RunUpdates())
    run.updates.watched = watched
    return run


def test_reports_of_a_watched_run_do_not_wait_for_those_of_others():
    watched, other, pace = reporting(watched=True), reporting(watched=False), UpdatePace()
    assert pace.due([other], 100.0) == [other], "at once, after a quiet time"
    pace.written(100.0)
    assert pace.rest([], 100.1) == FOREVER
    assert (pace.due([other], 100.1), pace.rest([other], 100.1)) == ([], pytest.approx(GAP - 0.1))
    assert (pace.rest([other, watched], 100.1), pace.due([other, watched], 100.1)) == (0.0, [watched])
    pace.written(100.0 + GAP)  # that statement was slow, and was not about the others
    assert pace.due([other, watched], 100.0 + GAP) == [other, watched]
    pace.written(100.0 + GAP)
    assert pace.due([other], 100.1 + GAP) == []


async def test_a_run_that_a_client_watches_is_known_as_such(app, database):
    """Its next reports are written more often."""
    runs, told = [], asyncio.Event()

    @app.job
    async def work(ctx: Context) -> None:
        runs.append(ctx._run)
        ctx.progress(1)
        await told.wait()
        ctx.progress(2)
        await until(lambda: ctx._run.updates.watched)

    async with serving(app):
        handle = await work.enqueue()
        await until(lambda: database.sql("select percent from tenure.progress"), is_=[(1,)])
        assert not runs[0].updates.watched
        database.sql("insert into tenure.watches (job_id, until) values (%s, now() + interval '1 minute')", handle.id)
        told.set()
        await handle.result("20s")


async def test_progress_of_many_jobs_goes_out_together(app, database, sent):
    settled = []
    app.on(JobSettled)(settled.append)

    @app.job
    async def work(ctx: Context) -> None:
        for n in range(100):
            ctx.progress(n)
            await asyncio.sleep(0)
        ctx.progress(100)

    async with serving(app, concurrency=50):
        handles = await app.enqueue_many(work.call() for _ in range(50))
        await until(lambda: len(settled), is_=50)
    assert database.sql("select count(*), min(percent) from tenure.progress") == [(len(handles), 100)]
    assert sent["jobs/write_updates"] <= 15


async def test_progress_is_seen_while_the_job_runs(app, database):
    go_on = asyncio.Event()

    @app.job
    async def work(ctx: Context) -> None:
        for percent in (10, 20):
            ctx.progress(percent, "on my way")
            await go_on.wait()
            go_on.clear()

    async with serving(app):
        handle = await work.enqueue()
        first = await until(handle.progress)
        assert (first.percent, first.message) == (10, "on my way")
        seen = []

        async def watch():
            async for update in handle.watch():
                percent = update.progress.percent if update.progress else None
                seen.append((update.status.state, percent))

        watching = asyncio.create_task(watch())
        await until(lambda: seen, is_=[("running", 10)])
        go_on.set()
        await until(lambda: seen, is_=[("running", 10), ("running", 20)])
        go_on.set()
        await watching
        assert seen[-1] == ("completed", 20)


@pytest.mark.parametrize("percent", [-0.1, 100.1, float("nan"), float("inf")])
async def test_progress_out_of_range_is_refused_in_the_handler(app, percent):
    refused = []

    @app.job
    async def work(ctx: Context) -> None:
        with pytest.raises(ValueError, match="from 0 to 100") as caught:
            ctx.progress(percent)
        refused.append(caught.value)

    async with serving(app):
        handle = await work.enqueue()
        await handle.result("30s")
    assert refused
    assert await handle.progress() is None


async def test_the_notes_of_a_stale_run_are_refused(app, database):
    """Another worker has the job by now, and has said how far it is."""
    taken, reasons = asyncio.Event(), []

    @app.job(lease="1h")
    async def work(ctx: Context) -> None:
        ctx.progress(10)
        await taken.wait()
        ctx.progress(90, "stale")
        ctx.log.info("stale")
        ctx.heartbeat()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            reasons.append(ctx.signal.reason)
            with pytest.raises(Aborted):
                ctx.heartbeat()
            raise

    async with serving(app):
        handle = await work.enqueue()
        await until(handle.progress)
        take_over(database.sql)
        database.sql("update tenure.jobs set lease_until = '2100-01-01'")
        database.sql("update tenure.progress set fence = 2, percent = 15")
        taken.set()
        await until(lambda: reasons, is_=["taken_by_another_worker"])
        assert database.sql("select lease_until = '2100-01-01' from tenure.jobs") == [(True,)]
    assert (await handle.progress()).percent == 15
    assert database.sql("select count(*) from tenure.logs") == [(0,)]


async def test_what_is_said_while_the_jobs_row_is_locked_for_a_moment_is_not_lost(app, database, other, sent):
    """An enqueue of the run itself locks the row of its job until it is committed; an operator's query may do the same."""
    said, go_on = asyncio.Event(), asyncio.Event()

    @app.job(lease="1h")
    async def work(ctx: Context) -> None:
        await go_on.wait()
        go_on.clear()
        ctx.progress(100, "nearly")
        ctx.log.info("kept")
        said.set()
        await go_on.wait()

    async with serving(app):
        handle = await work.enqueue()
        await until(lambda: database.sql("select count(*) from tenure.jobs where state = 'running'"), is_=[(1,)])
        with other.connection.transaction():
            other.sql("select from tenure.jobs for share")
            go_on.set()
            await said.wait()
            await until(lambda: sent["jobs/write_updates answered"] or database.sql(WAITS_FOR_LOCK))
        go_on.set()
        await handle.result("30s")
    progress = await handle.progress()
    assert (progress and progress.message) == "nearly"
    assert [line["message"] for line in lines_of(database, handle)] == ["kept"]


async def test_the_last_200_log_lines_are_kept_in_order_with_their_fields(app, database):
    @app.job
    async def work(ctx: Context) -> None:
        for n in range(1000):
            ctx.log.info("line", n=n, even=n % 2 == 0)

    async with serving(app):
        handle = await work.enqueue()
        await handle.result("30s")
    lines = lines_of(database, handle)
    assert [line["fields"] for line in lines] == [{"n": n, "even": n % 2 == 0} for n in range(800, 1000)]
    report = await handle.report()
    assert [(line.message, line.fields) for line in report.log] == [("line", line["fields"]) for line in lines]


async def test_log_lines_said_over_time_are_kept_in_order_too(app, database):
    @app.job
    async def work(ctx: Context) -> None:
        for n in range(600):
            ctx.log.warning("line", at=n)
            if n % 50 == 0:
                await asyncio.sleep(0.06)

    async with serving(app):
        handle = await work.enqueue()
        await handle.result("30s")
    lines = lines_of(database, handle)
    assert [line["fields"]["at"] for line in lines][-200:] == list(range(400, 600))
    assert [line["n"] for line in lines] == sorted(line["n"] for line in lines)
    assert len(lines) < 400
    assert {line["level"] for line in lines} == {"warning"}


@pytest.mark.parametrize("run_in", ["loop", "thread"])
async def test_a_heartbeat_extends_the_lease_of_a_kind_that_has_one(app, database, run_in):
    go_on = asyncio.Event()

    def beats(ctx: Context) -> None:
        while not go_on.is_set():
            ctx.heartbeat()
            ctx.signal.wait_sync(0.1)

    async def beats_async(ctx: Context) -> None:
        while not go_on.is_set():
            ctx.heartbeat()
            await asyncio.sleep(0.1)

    job = app.job(name="beats", lease="1500ms", run_in=run_in)(beats_async if run_in == "loop" else beats)
    async with serving(app):
        handle = await job.enqueue()
        # Far longer than one lease, and never lost.
        await until(lambda: database.sql(LEASE_EXTENDED), is_=[(True,)])
        go_on.set()
        await handle.result("30s")
    status = await handle.status()
    assert (status.fence, status.crashes) == (1, 0)


async def test_a_job_that_forgets_its_heartbeat_is_given_to_another(app, database):
    reasons = []

    @app.job(lease="500ms")
    async def forgets(ctx: Context) -> str:
        if ctx.fence > 1:
            return "second"
        try:
            await asyncio.sleep(60)
        finally:
            reasons.append(ctx.signal.reason)

    async with serving(app):
        handle = await forgets.enqueue()
        assert await handle.result("30s") == "second"
        await until(lambda: reasons, is_=["taken_by_another_worker"])
    status = await handle.status()
    assert (status.attempt, status.fence, status.crashes) == (1, 2, 1)
    assert database.sql("select what from tenure.incidents") == [("lease_lost",)]


@pytest.mark.parametrize("run_in", ["loop", "thread"])
async def test_a_run_whose_heartbeats_cannot_be_written_until_its_lease_ends_is_aborted_and_runs_again(
    app, database, other, run_in
):
    """Its row is locked here; a connection that is gone has the same effect. Neither is the handler's fault."""
    database.term("reaper", ttl=600.0)  # no reaper runs: it might requeue the job before the worker does
    reasons, started = [], []

    def beats(ctx: Context) -> str:
        if ctx.fence > 1:
            return "second"
        started.append(ctx.job_id)
        try:
            while True:
                ctx.heartbeat()
                ctx.signal.wait_sync(0.05)
        finally:
            reasons.append(ctx.signal.reason)

    async def beats_async(ctx: Context) -> str:
        if ctx.fence > 1:
            return "second"
        started.append(ctx.job_id)
        try:
            while True:
                await ctx.heartbeat()
                await asyncio.sleep(0.05)
        finally:
            reasons.append(ctx.signal.reason)

    job = app.job(name="beats", lease="700ms", max_attempts=1)(beats_async if run_in == "loop" else beats)
    async with serving(app):
        handle = await job.enqueue()
        await until(lambda: started)
        other.sql("begin")
        other.sql("select id from tenure.jobs for update")
        await until(lambda: reasons, is_=["error"])
        other.sql("commit")
        assert await handle.result("30s") == "second"
    status = await handle.status()
    assert (status.attempt, status.crashes, status.fence) == (1, 0, 2)
    assert database.sql("select what from tenure.incidents") == [("requeued",)]


async def test_a_run_without_a_lease_of_its_own_is_not_aborted_when_its_reports_cannot_be_written(app, database, other):
    running, go_on = asyncio.Event(), asyncio.Event()

    @app.job
    async def work(ctx: Context) -> str:
        running.set()
        while not go_on.is_set():
            await ctx.heartbeat()
            await ctx.progress(50)
            await asyncio.sleep(0.05)
        return "first"

    async with serving(app):
        handle = await work.enqueue()
        await running.wait()
        other.sql("begin")
        other.sql("select id from tenure.jobs for update")
        await until(lambda: other.sql("select clock_timestamp() - now() > interval '2 s'"), is_=[(True,)])
        other.sql("commit")
        go_on.set()
        assert await handle.result("30s") == "first"


@pytest.mark.parametrize("run_in", ["loop", "thread"])
async def test_reports_may_be_awaited_returned_or_left_alone(app, database, run_in, recwarn):
    async def awaits(ctx: Context) -> None:
        assert await ctx.heartbeat() is None
        assert await ctx.progress(50) is None
        ctx.heartbeat()
        return ctx.progress(100, "all of it")

    def plain(ctx: Context) -> None:
        ctx.heartbeat()
        return ctx.progress(100, "all of it")

    job = app.job(name="work", max_attempts=1)(awaits if run_in == "loop" else plain)
    async with serving(app):
        handle = await job.enqueue()
        assert await handle.result("30s") is None
        assert (await handle.progress()).message == "all of it"
    assert [str(warning.message) for warning in recwarn] == []


async def test_an_awaited_heartbeat_lets_others_run(app, database):
    """A coroutine that computes between two heartbeats would otherwise hold up all others of its process."""
    turns = []

    @app.job
    async def busy(ctx: Context) -> int:
        asyncio.get_running_loop().call_soon(turns.append, "another")
        await ctx.heartbeat()
        return len(turns)

    async with serving(app):
        assert await (await busy.enqueue()).result("30s") == 1


REFUSAL = """
    create schema if not exists audit;
    create or replace function audit.refuse() returns trigger language plpgsql as
        $$ begin raise exception 'the auditor says no' using errcode = 'AU001'; end $$;
    create trigger audit before insert or update on tenure.logs for each row execute function audit.refuse()"""


@pytest.fixture
def logs_are_refused(database):
    database.connection.execute(REFUSAL.encode(), prepare=False)
    yield
    database.sql("drop schema audit cascade")


@pytest.mark.parametrize("run_in", ["loop", "thread"])
async def test_a_heartbeat_is_written_although_the_log_line_beside_it_is_refused(app, database, logs_are_refused, run_in):
    go_on = asyncio.Event()

    def beats(ctx: Context) -> None:
        while not go_on.is_set():
            ctx.log.info("alive")
            ctx.heartbeat()
            ctx.signal.wait_sync(0.05)

    async def beats_async(ctx: Context) -> None:
        while not go_on.is_set():
            ctx.log.info("alive")
            ctx.heartbeat()
            await asyncio.sleep(0.05)

    job = app.job(name="beats", lease="1500ms", run_in=run_in)(beats_async if run_in == "loop" else beats)
    async with serving(app):
        handle = await job.enqueue()
        await until(lambda: database.sql(LEASE_EXTENDED), is_=[(True,)])
        go_on.set()
        await handle.result("30s")
    status = await handle.status()
    assert (status.fence, status.crashes) == (1, 0)
    assert lines_of(database, handle) == []


async def test_a_thread_that_reports_while_refused_notes_are_dropped_breaks_nothing():
    class RefusingLink:
        async def fetch(self, query):
            raise Refused("the auditor says no")

    class FakeRun:
        job_id, claim_id, updates, settled, reports = "job", "claim", None, False, True

    notes, run = UpdateWriter(RefusingLink(), watched=print, lost=print), FakeRun()  # type: ignore[arg-type]
    notes.log_line(run, "info", "first", {})  # type: ignore[arg-type]
    await notes.flush()
    notes._mark(run)  # type: ignore[arg-type]  # a thread had its line added before, and marks the run only now
    await notes.flush()
    assert not notes._dirty
