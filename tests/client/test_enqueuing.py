"""Enqueuing: what a caller may pass, and what it gets."""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from pydantic import BaseModel

from tenure import ConfigError, InvalidInput, InvalidPayload, NotEnqueued, StoreUnavailable
from tenure.store.link import Link
from tenure.store.notifier import LONGEST_GAP
from tests.client.listening import notified
from tests.store.database import Database
from tests.waiting import until


@pytest.fixture
async def app(app):
    yield app
    await app.close()


@pytest.fixture
def greet(app):
    @app.job(queue="mail", priority="high", max_attempts=7, capability="smtp")
    async def greet(name: str, times: int = 1) -> str:
        return name * times

    return greet


def rows(database):
    columns = "kind, queue, priority, max_attempts, capability, state, input"
    return database.sql(f"select {columns} from tenure.jobs order by position, id")


async def test_a_job_is_enqueued_as_it_was_defined(greet, database):
    handle = await greet.enqueue("Ada", times=2)
    assert rows(database) == [("greet", "mail", 75, 7, "smtp", "pending", {"name": "Ada", "times": 2})]
    assert database.sql("select id from tenure.jobs") == [(handle.id,)]
    assert (await handle.status()).state == "pending"


async def test_a_single_call_may_say_it_differently(greet, database):
    other = greet.using(queue="post", priority="low", max_attempts=1, capability="fax")
    await other.enqueue("Bo")
    await greet.enqueue("Cy")
    assert [row[:5] for row in rows(database)] == [("greet", "post", 25, 1, "fax"), ("greet", "mail", 75, 7, "smtp")]


async def test_later_by_delay_and_by_time(greet, database):
    at = datetime.now(UTC) + timedelta(days=1)
    await greet.using(delay="1d").enqueue("a")
    await greet.using(run_at=at).enqueue("b")
    found = dict(database.sql("select input ->> 'name', run_at from tenure.jobs where state = 'scheduled'"))
    assert found["b"] == at
    assert abs(found["a"] - at) < timedelta(minutes=1)


async def test_many_are_enqueued_together_and_in_order(app, greet, database):
    handles = await app.enqueue_many([greet.call(f"{n}") for n in range(50)])
    assert [row[0] for row in database.sql("select id from tenure.jobs order by position")] == [handle.id for handle in handles]
    assert database.sql("select count(distinct xmin::text) from tenure.jobs") == [(1,)]
    assert await app.enqueue_many([]) == []


@pytest.mark.parametrize("wrong", [lambda greet: greet("ada"), lambda greet: greet, lambda _: {"name": "ada"}])
async def test_what_is_not_a_call_is_refused_with_the_way_out_and_nothing_is_written(app, greet, database, wrong):
    with pytest.raises(ConfigError, match=r"is not a call: write `job.call\(\.\.\.\)` for each job"):
        await app.enqueue_many([greet.call("bea"), wrong(greet)])
    assert database.sql("select count(*) from tenure.jobs") == [(0,)]


async def test_many_are_all_written_or_none(app, greet, database):
    call = greet.call("twice")
    with pytest.raises(NotEnqueued):
        await app.enqueue_many([greet.call("first"), call, call])
    assert rows(database) == []


ENQUEUES = {"jobs/enqueue_jobs", "jobs/enqueue_one"}


def count_statements(monkeypatch) -> list[str]:
    fetch, seen = Link.fetch, []

    async def counted(self, query):
        if query.name in ENQUEUES:
            seen.append(query.name)
        return await fetch(self, query)

    monkeypatch.setattr(Link, "fetch", counted)
    return seen


async def test_calls_at_the_same_time_share_statements(greet, database, monkeypatch):
    statements = count_statements(monkeypatch)
    handles = await asyncio.gather(*(greet.enqueue(f"{n}") for n in range(200)))
    assert len({handle.id for handle in handles}) == 200
    assert database.sql("select count(*) from tenure.jobs") == [(200,)]
    assert 1 <= len(statements) <= 3


async def test_one_refused_call_among_many_fails_alone(app, greet, database):
    poisoned = greet.using()
    poisoned._maker._fields = replace(poisoned._maker._fields, priority=7000)
    calls = [greet.enqueue(f"{n}") for n in range(20)]
    results = await asyncio.gather(*calls[:7], poisoned.enqueue("bad"), *calls[7:], return_exceptions=True)
    assert [type(result) for result in results if isinstance(result, Exception)] == [InvalidPayload]
    assert isinstance(results[7], InvalidPayload)
    assert database.sql("select count(*) from tenure.jobs") == [(20,)]


async def test_a_caller_that_is_cancelled_does_not_take_others_along(greet, database):
    calls = [asyncio.create_task(greet.enqueue(f"{n}")) for n in range(10)]
    await asyncio.sleep(0)
    calls[3].cancel()
    results = await asyncio.gather(*calls, return_exceptions=True)
    assert [n for n, result in enumerate(results) if isinstance(result, BaseException)] == [3]


async def test_an_enqueue_whose_answer_was_lost_is_repeated_and_makes_one_job(greet, database, monkeypatch):
    fetch, lost = Link.fetch, []

    async def lose_once(self, query):
        answer = await fetch(self, query)
        if query.name in ENQUEUES and not lost:
            lost.append(query)
            raise StoreUnavailable("the connection broke after the commit")
        return answer

    monkeypatch.setattr(Link, "fetch", lose_once)
    await greet.enqueue("once")
    assert [query.name for query in lost] == ["jobs/enqueue_one"]
    assert database.sql("select count(*) from tenure.jobs") == [(1,)]


class Model(BaseModel):
    value: float


MISTAKES = {
    "a missing argument": (InvalidInput, lambda job: job.call()),
    "one too many": (InvalidInput, lambda job: job.call("a", 1, 2)),
    "an unknown name": (InvalidInput, lambda job: job.call("a", tines=2)),
    "a wrong type": (InvalidInput, lambda job: job.call("a", times="many")),
    "a NUL": (InvalidPayload, lambda job: job.call("a\0")),
    "half a character": (NotEnqueued, lambda job: job.call("\ud800")),
    "too large": (InvalidPayload, lambda job: job.call("a" * 2_000_000)),
    "both delay and run_at": (ConfigError, lambda job: job.using(delay=1, run_at=datetime.now(UTC))),
    "a time without a zone": (ConfigError, lambda job: job.using(run_at=datetime(2030, 1, 1))),  # noqa: DTZ001
    "a negative delay": (ConfigError, lambda job: job.using(delay=-1)),
    "a delay that is none": (ConfigError, lambda job: job.using(delay="soon")),
    "a priority too high": (ConfigError, lambda job: job.using(priority=101)),
    "a priority that is none": (ConfigError, lambda job: job.using(priority="urgent")),
    "no attempts": (ConfigError, lambda job: job.using(max_attempts=0)),
    "fewer than no attempts": (ConfigError, lambda job: job.using(max_attempts=-1)),
    "a queue without a name": (ConfigError, lambda job: job.using(queue="")),
    "an unknown option": (ConfigError, lambda job: job.using(prioritee=1)),
}


@pytest.mark.parametrize("mistake", MISTAKES)
async def test_a_mistake_is_reported_where_it_is_made_and_nothing_is_written(greet, database, mistake):
    error, make = MISTAKES[mistake]
    with pytest.raises(error) as caught:
        make(greet)
    assert str(caught.value)
    assert rows(database) == []


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
async def test_a_value_that_is_not_a_number_is_refused(app, database, value):
    @app.job
    async def work(n: float) -> None: ...

    with pytest.raises(NotEnqueued):
        await work.enqueue(value)
    assert rows(database) == []


async def test_calls_may_come_from_a_generator_and_its_mistake_undoes_them_all(app, greet, database):
    def calls():
        for n in range(5000):
            yield greet.call(f"{n}")
        yield greet.call()

    with pytest.raises(InvalidInput):
        await app.enqueue_many(calls())
    assert rows(database) == []
    handles = await app.enqueue_many(greet.call(f"{n}") for n in range(5000))
    assert database.sql("select count(*) from tenure.jobs") == [(len(handles),)]


async def test_a_time_in_the_past_means_now_and_the_workers_of_the_queue_are_notified(greet, database, other):
    other.sql("listen tenure")
    await greet.using(run_at=datetime.now(UTC) - timedelta(hours=1)).enqueue("late")
    assert rows(database)[0][5] == "pending"
    assert await notified(other, 2) == {"due", "jobs mail"}


async def test_workers_are_notified_before_the_caller_continues(greet, database):
    """What it does next may block the event loop for long."""
    database.sql("listen tenure")
    await greet.enqueue("the first one connects")
    await notified(database, 1)
    for n in range(5):
        await asyncio.sleep(LONGEST_GAP)  # one that follows another within this time is sent together with later ones
        await greet.using(queue=f"queue-{n}").enqueue("Ada")
        notes = database.connection.notifies(timeout=1, stop_after=1)  # blocks the event loop
        if f"jobs queue-{n}" in [note.payload for note in notes]:
            return
    pytest.fail("no notification was sent while the caller blocked the event loop")


async def test_workers_are_notified_of_a_job_whose_caller_was_cancelled(greet, database, dsn):
    database.sql("listen tenure")
    await greet.using(queue="other").enqueue("the first one connects")
    with Database(dsn) as other, other.connection.transaction():
        other.sql("lock table tenure.jobs in share mode")
        call = asyncio.create_task(greet.enqueue("Ada"))
        # Tables have the same number in each copy of a database.
        here = "database = (select oid from pg_database where datname = current_database())"
        waiting = f"select count(*) from pg_locks where {here} and relation = 'tenure.jobs'::regclass and not granted"
        await until(lambda: other.sql(waiting), is_=[(1,)])
        call.cancel()
        await asyncio.wait([call])
    assert await notified(database, 2) == {"jobs other", "jobs mail"}
    assert len(rows(database)) == 2
