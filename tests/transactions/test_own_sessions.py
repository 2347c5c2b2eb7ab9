"""`ctx.transaction(session)`: a session of the handler's own commits when its block ends, and the job with it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest

from tenure import Context, Handle, LeaseLost, ResultTimeout, Tenure
from tenure.client import waiting
from tenure.store import late_outputs
from tenure.store.query import Query
from tests.transactions.handlers import AT_ONCE
from tests.transactions.own_sessions import ASYNC, SYNC
from tests.waiting import until
from tests.worker.serving import serving


class Checkpoints:
    """Where the handler waits for the test, and what it saw."""

    def __init__(self) -> None:
        self.inside, self.outside = threading.Event(), threading.Event()
        self.at: list[str] = []
        self.caught: list[BaseException] = []

    def wait(self, place: str) -> None:
        self.at.append(place)
        assert getattr(self, place).wait(20)


@pytest.fixture
async def app(dsn, shop):
    app = Tenure(dsn)

    @app.job(queue="later")
    async def ship(name: str) -> None: ...

    app.checkpoints = Checkpoints()
    for made in ASYNC.values():
        app.job(name=made.__name__, retry=AT_ONCE)(pays(app, dsn, made, ship))
    for made in SYNC.values():
        app.job(name=made.__name__, retry=AT_ONCE)(pays_sync(app, dsn, made, ship))
    async with serving(app, queues=["default"]):
        yield app
        app.checkpoints.inside.set()
        app.checkpoints.outside.set()
    await app.close()


class Looks:
    """For which jobs a client has asked whether their output is there."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._ids: list[str] = []
        self._find = late_outputs.find_late_output
        monkeypatch.setattr(late_outputs, "find_late_output", self._note)

    def _note(self, job_id: str) -> Query:
        self._ids.append(job_id)
        return self._find(job_id)

    async def for_output_of(self, *handles: Handle) -> None:
        """The second answer has arrived for each: it begins the third."""
        await until(lambda: all(self._ids.count(str(handle.id)) >= 3 for handle in handles))


@pytest.fixture
def looks(monkeypatch):
    return Looks(monkeypatch)


def pays(app, dsn, made, ship) -> Callable:
    async def pay(ctx: Context, name: str, set_output: bool = False, inside: str = "", after: str = "") -> str:
        checkpoints = app.checkpoints
        try:
            async with made(dsn) as (session, insert), ctx.transaction(session) as tx:
                assert tx is session
                await insert(name)
                await ship.using(conn=session).enqueue(name)
                if set_output:
                    ctx.set_output(f"set {name}")
                await asyncio.to_thread(checkpoints.wait, "inside")
                if inside:
                    raise ValueError(inside)
        except LeaseLost as error:
            checkpoints.caught.append(error)
            raise
        await asyncio.to_thread(checkpoints.wait, "outside")
        if after:
            raise ValueError(after)
        return f"returned {name}"

    return pay


def pays_sync(app, dsn, made, ship) -> Callable:
    def pay(ctx: Context, name: str, set_output: bool = False, inside: str = "", after: str = "") -> str:
        checkpoints = app.checkpoints
        try:
            with made(dsn) as (session, insert), ctx.transaction(session) as tx:
                assert tx is session
                insert(name)
                ship.using(conn=session).enqueue_sync(name)
                if set_output:
                    ctx.set_output(f"set {name}")
                checkpoints.wait("inside")
                if inside:
                    raise ValueError(inside)
        except LeaseLost as error:
            checkpoints.caught.append(error)
            raise
        checkpoints.wait("outside")
        if after:
            raise ValueError(after)
        return f"returned {name}"

    return pay


EVERY = pytest.mark.parametrize("session", [*ASYNC, *SYNC])
SOME = pytest.mark.parametrize("session", ["psycopg_async", "asyncpg_connection", "alchemy_async_session", "alchemy_session"])


def job(app, session):
    return app.jobs[session]


@EVERY
async def test_rows_follow_up_and_completion_are_committed_when_the_block_ends(app, shop, session):
    handle = await job(app, session).enqueue("ada")
    await until(lambda: app.checkpoints.at, is_=["inside"])
    assert shop.seen("ada") == (0, 0, "running")

    app.checkpoints.inside.set()

    await until(lambda: app.checkpoints.at, is_=["inside", "outside"])
    assert shop.seen("ada") == (1, 1, "completed")
    assert len(shop.transactions("ada")) == 1
    app.checkpoints.outside.set()
    await until(lambda: shop.of("ada", "output"), is_=("returned ada",))
    assert await handle.result() == "returned ada"


@SOME
async def test_an_output_that_was_set_inside_is_committed_with_the_rest_and_stays(app, shop, session):
    app.checkpoints.inside.set()
    handle = await job(app, session).enqueue("ada", set_output=True)
    assert await handle.result(timeout=30) == "set ada"
    assert len(shop.transactions("ada")) == 1
    app.checkpoints.outside.set()
    await until(lambda: app.checkpoints.at, is_=["inside", "outside"])
    assert shop.of("ada", "output", "attempt", "fence") == ("set ada", 1, 1)


@SOME
async def test_a_run_whose_job_was_taken_away_learns_it_and_has_written_nothing(app, shop, session):
    await job(app, session).enqueue("ada", set_output=True)
    await until(lambda: app.checkpoints.at, is_=["inside"])
    shop.take_away("ada")
    app.checkpoints.inside.set()
    await until(lambda: len(app.checkpoints.caught), is_=1)
    assert shop.seen("ada") == (0, 0, "running")
    assert app.checkpoints.caught[0].job_id == shop.of("ada", "id")[0]


@SOME
async def test_what_is_raised_inside_undoes_all_of_it(app, shop, session):
    app.checkpoints.inside.set()
    await job(app, session).enqueue("ada", inside="no money")
    await shop.comes_to("ada", 0, 0, "dead_letter")
    assert "ValueError: no money" in shop.of("ada", "error")[0]


@SOME
async def test_what_is_raised_after_it_cannot_undo_the_completion(app, shop, session, caplog):
    app.checkpoints.inside.set()
    app.checkpoints.outside.set()
    handle = await job(app, session).enqueue("ada", set_output=True, after="too late")
    await until(lambda: "completed by its own transaction" in caplog.text)
    assert shop.seen("ada") == (1, 1, "completed")
    assert shop.of("ada", "attempt", "error", "output") == (1, None, "set ada")
    assert await handle.result() == "set ada"


@SOME
async def test_a_constraint_that_fails_at_the_commit_undoes_all_of_it_and_tells(app, shop, session):
    shop.sql("insert into public.payments values ('ada')")
    app.checkpoints.inside.set()
    await job(app, session).enqueue("ada")
    await shop.comes_to("ada", 1, 0, "dead_letter")
    assert "duplicate key value" in shop.of("ada", "error")[0]


@pytest.mark.parametrize("session", ["alchemy_async_session", "alchemy_session"])
async def test_a_client_that_waits_for_the_result_is_notified_when_it_is_there(app, shop, monkeypatch, session):
    """Not when the job is completed, for its output comes after that."""
    monkeypatch.setattr(waiting, "FIRST_LOOK", 3600.0)
    handle = await job(app, session).enqueue("ada")
    result = asyncio.create_task(handle.result(timeout=20))
    await until(lambda: shop.sql("select count(*) from tenure.watches"), is_=[(1,)])
    app.checkpoints.inside.set()
    await until(lambda: app.checkpoints.at, is_=["inside", "outside"])
    await until(lambda: shop.of("ada", "state"), is_=("completed",))
    app.checkpoints.outside.set()
    assert await result == "returned ada"


@SOME
async def test_a_result_waits_for_the_output_of_a_handler_that_works_on_after_its_block(app, shop, session, looks):
    app.checkpoints.inside.set()
    handle = await job(app, session).enqueue("ada")
    result = asyncio.create_task(handle.result(timeout=20))
    await looks.for_output_of(handle)
    assert not result.done()
    app.checkpoints.outside.set()
    assert await result == "returned ada"
    assert shop.sql("select count(*) from tenure.watches where job_id <> %s", handle.id) == [(0,)]


async def test_a_result_that_may_be_none_waits_as_well(app, shop, dsn, looks):
    leave = threading.Event()

    @app.job
    def maybe(ctx: Context, what: str) -> int | None:
        with SYNC["psycopg_sync"](dsn) as (session, insert), ctx.transaction(session):
            insert(what)
        assert leave.wait(20)
        return 42 if what == "number" else None

    async with serving(app, queues=["default"]):
        handles = [await maybe.enqueue("number"), await maybe.enqueue("nothing")]
        results = [asyncio.create_task(handle.result(timeout=20)) for handle in handles]
        await looks.for_output_of(*handles)
        assert not any(result.done() for result in results)
        leave.set()
        assert await asyncio.gather(*results) == [42, None]


async def test_a_result_whose_time_is_up_before_the_output_is_there_raises(app, shop):
    app.checkpoints.inside.set()
    handle = await job(app, "alchemy_session").enqueue("ada")
    await until(lambda: app.checkpoints.at, is_=["inside", "outside"])
    with pytest.raises(ResultTimeout) as caught:
        await handle.result(timeout=0.3)
    assert caught.value.state == "completed"


@SOME
async def test_the_result_of_a_run_that_fails_before_it_adds_its_output_is_none(app, shop, session, looks):
    app.checkpoints.inside.set()
    handle = await job(app, session).enqueue("ada", after="too late")
    result = asyncio.create_task(handle.result(timeout=20))
    await looks.for_output_of(handle)
    assert not result.done()
    app.checkpoints.outside.set()
    assert await asyncio.wait_for(result, 15) is None


async def test_the_result_of_a_run_whose_worker_is_gone_is_none(app, shop, looks):
    app.checkpoints.inside.set()
    handle = await job(app, "alchemy_session").enqueue("ada")
    await until(lambda: app.checkpoints.at, is_=["inside", "outside"])
    result = asyncio.create_task(handle.result(timeout=20))
    await looks.for_output_of(handle)
    assert not result.done()
    shop.sql("update tenure.workers set died_at = now(), died_how = 'crashed'")
    assert await asyncio.wait_for(result, 15) is None


@pytest.mark.parametrize("session", ["alchemy_async_session", "alchemy_session"])
async def test_a_job_canceled_meanwhile_has_written_nothing(app, shop, session):
    handle = await job(app, session).enqueue("ada")
    await until(lambda: app.checkpoints.at, is_=["inside"])
    assert await handle.cancel("no need")
    app.checkpoints.inside.set()
    open_sessions = "select count(*) from pg_locks where relation = 'public.payments'::regclass and mode = 'RowExclusiveLock'"
    await until(lambda: shop.sql(open_sessions), is_=[(0,)])
    assert shop.seen("ada") == (0, 0, "canceled")
