"""A job that PostgreSQL refuses to claim stops no other: it is reported once, passed over, and tried again later."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest

from tenure import Limit, Tenure
from tenure.model.errors import StoreUnavailable
from tenure.store import limits
from tenure.store.claim_replies import PeekedJob
from tenure.store.faults import Refused
from tenure.worker.claim import refused_jobs
from tenure.worker.claim.refused_jobs import RefusedJobs
from tests.store.database import Database
from tests.waiting import until
from tests.worker.serving import serving

BAD = "new.state = 'running' and new.input ->> 'n' = '0'"
CODES = ["AU001", "P0001", "42501", "0A000", "55P03", "08001", "40001"]


@pytest.fixture
def refuse(database: Database) -> Iterator[Callable[..., None]]:
    """A trigger of the user's on tenure.jobs that raises an error."""
    database.sql("create schema audit")
    database.sql("create sequence audit.tries")

    def make(condition: str = BAD, *, code: str = "AU001", level: str = "row") -> None:
        database.sql(
            "create function audit.refuse() returns trigger language plpgsql as"
            f" $$ begin perform nextval('audit.tries'); raise exception 'the auditor says no' using errcode = '{code}'; end $$"
        )
        when = f"when ({condition})" if level == "row" else ""
        database.sql(f"create trigger audit before update on tenure.jobs for each {level} {when} execute function audit.refuse()")

    yield make
    database.sql("drop schema audit cascade")


@pytest.fixture(params=["open", "limited"])
async def app(app: Tenure, request: pytest.FixtureRequest):
    """Jobs of the kind `work` with and without a limit; those of the kind `free` have none."""

    @app.job(concurrency=Limit(20) if request.param == "limited" else None)
    async def work(n: int) -> int:
        return n

    @app.job
    async def free() -> None: ...

    yield app
    await app.close()


def serve(app: Tenure, concurrency: int = 20):
    return serving(app, concurrency=concurrency, queues=["default", "other"])


def complaints(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    """Without what the doctor finds on the test server, and without connections that earlier tests left behind."""
    others = ("doctor", "outages")
    return [record for record in caplog.records if record.levelno >= logging.WARNING and record.module not in others]


async def completed(database: Database, count: int) -> None:
    await until(lambda: database.sql("select count(*) from tenure.history where state = 'completed'"), is_=[(count,)], within=15)


def pending(database: Database) -> list[str]:
    return [job_id for (job_id,) in database.sql("select id::text from tenure.jobs where state = 'pending' order by position")]


async def tried(database: Database, times: int) -> None:
    await until(lambda: database.sql("select last_value from audit.tries")[0][0] >= times)


def numbered(*numbers: int) -> list[dict[str, object]]:
    return [{"input": {"n": n}} for n in numbers]


@pytest.mark.parametrize("code", ["AU001", "P0001", "23514", "42501", "0A000", "55P03", "08001", "40001"])
async def test_a_job_that_cannot_be_claimed_holds_up_no_other_and_is_reported_once(app, database, refuse, caplog, code):
    refuse(code=code)
    [bad, *_] = database.enqueue(*numbered(*range(30)))
    database.enqueue(*numbered(1), queue="other")
    database.enqueue({"kind": "free"}, {"kind": "free", "queue": "other"})
    async with serve(app):
        await completed(database, 32)
        database.enqueue(*numbered(1, 2, 3, 4, 5))
        await completed(database, 37)
    assert pending(database) == [bad]
    [told] = complaints(caplog)
    assert (told.job_id, told.kind, told.queue, told.sqlstate) == (bad, "work", "default", code)
    assert "the auditor says no" in told.error


@pytest.mark.parametrize("concurrency", [1, 3])
async def test_more_refused_jobs_than_slots_hold_up_no_other(app, database, refuse, caplog, concurrency):
    refuse()
    bad = database.enqueue(*numbered(*[0] * 12))
    database.enqueue(*numbered(*range(1, 6)))
    async with serve(app, concurrency):
        await completed(database, 5)
    assert pending(database) == bad
    assert {told.job_id for told in complaints(caplog) if hasattr(told, "job_id")} <= set(bad)


async def test_it_runs_when_it_is_no_longer_refused(app, database, refuse, caplog):
    refuse()
    database.enqueue(*numbered(0))
    database.enqueue(*numbered(*range(1, 6)))
    async with serve(app):
        await completed(database, 5)
        database.sql("drop trigger audit on tenure.jobs")
        await completed(database, 6)
    assert len(complaints(caplog)) == 1


async def test_repeated_refusals_are_reported_once(app, database, refuse, caplog, monkeypatch):
    monkeypatch.setattr(refused_jobs, "FIRST_AGAIN", 0.05)
    refuse()
    database.enqueue(*numbered(0))
    async with serve(app):
        # A claim that is refused is repeated for the job alone: two tries each time.
        await tried(database, 6)
    assert len(complaints(caplog)) == 1


async def test_the_held_jobs_of_the_other_halves_run_once(app, database, refuse):
    refuse("new.state = 'running' and (new.input ->> 'n')::int % 7 = 0")
    database.enqueue(*numbered(*range(1, 41)))
    async with serve(app):
        await completed(database, 35)
    assert database.sql("select distinct attempt, crashes from tenure.history") == [(1, 0)]
    assert len(pending(database)) == 5


async def test_a_refusal_that_is_not_about_single_jobs_blames_none(app, database, refuse, caplog):
    refuse(level="statement")
    database.enqueue(*numbered(1, 2))
    async with serve(app):
        await tried(database, 2)
        database.sql("drop trigger audit on tenure.jobs")
        await completed(database, 2)
    assert not [told for told in complaints(caplog) if hasattr(told, "job_id")]


async def test_while_one_limit_is_refused_other_limits_are_left_to_other_workers(app, database, refuse, monkeypatch):
    @app.job(concurrency=Limit(2))
    async def other() -> None: ...

    locked: list[list[str]] = []

    def lock(names, queues):
        locked.append(sorted(names))
        return original(names, queues)

    original = limits.lock
    monkeypatch.setattr(limits, "lock", lock)
    refuse("new.state = 'running' and new.kind = 'other'")
    bad = database.enqueue(*[{"kind": "other"}] * 40)
    async with serve(app):
        await tried(database, 3)
        database.enqueue(*numbered(*range(1, 21)))
        await completed(database, 20)
    assert pending(database) == bad
    everything = sorted({name for names in locked for name in names})
    # The claim of all, the look at what it would take, then the jobs of the refused kind alone.
    assert locked[:4] == [everything, everything, ["kind:other"], ["kind:other"]]


# Without PostgreSQL


def peeked(count: int, kind: str = "work") -> list[PeekedJob]:
    return [PeekedJob(f"{kind} {n}" if kind != "work" else f"job {n}", kind, "default", 50, n) for n in range(count)]


async def test_what_is_claimed_before_an_outage_is_not_lost():
    calls = []

    async def claim(these):
        calls.append(len(these))
        if len(calls) == 1:
            raise Refused("no", "P0001")
        if len(calls) == 3:
            raise StoreUnavailable("gone")
        return [SimpleNamespace(job_id=job.job_id) for job in these]

    isolated = await RefusedJobs().isolate(peeked(8), claim)
    assert calls == [8, 4, 4]
    assert [run.job_id for run in isolated.runs] == [f"job {n}" for n in range(4)]
    assert isolated.refused == {}


async def test_an_outage_before_anything_is_claimed_is_raised():
    async def claim(_):
        raise StoreUnavailable("gone")

    with pytest.raises(StoreUnavailable):
        await RefusedJobs().isolate(peeked(8), claim)


async def test_a_kind_that_is_refused_delays_no_other_kind():
    """As when a rate limit cannot be written: every claim under it is refused."""
    sizes = []

    async def claim(these):
        sizes.append(len(these))
        if these[0].kind == "refused":
            raise Refused("no", "P0001")
        return [SimpleNamespace(job_id=job.job_id) for job in these]

    isolated = await RefusedJobs().isolate(peeked(50, "refused") + peeked(3, "other"), claim)
    assert sizes[:2] == [50, 3] or sizes[:2] == [3, 50]
    assert [run.job_id for run in isolated.runs] == ["other 0", "other 1", "other 2"]
    assert len(isolated.refused) == refused_jobs.MOST_PER_CALL
    assert len(sizes) < 3 * refused_jobs.MOST_PER_CALL


async def test_the_memory_of_refused_jobs_is_bounded(monkeypatch, caplog):
    monkeypatch.setattr(refused_jobs, "MOST_REMEMBERED", 20)

    async def claim(_):
        raise Refused("no", "P0001")

    jobs = RefusedJobs()
    for start in range(0, 50, refused_jobs.MOST_PER_CALL):
        await jobs.isolate(peeked(50)[start:], claim)
    assert len(jobs._again_at) == len(jobs._pauses) == 20
    assert jobs._literal.count("job") == 20


async def test_the_time_until_a_job_is_tried_again_grows_to_minutes(monkeypatch):
    async def claim(_):
        raise Refused("no", "P0001")

    jobs, now, pauses = RefusedJobs(), 1000.0, []
    monkeypatch.setattr(refused_jobs, "time", SimpleNamespace(monotonic=lambda: now))
    for _ in range(10):
        await jobs.isolate(peeked(1), claim)
        assert not jobs.expire()
        began = now
        while not jobs.expire():
            now += 1.0
        pauses.append(now - began)
        assert jobs._again_at == {}
    assert pauses == [2, 4, 8, 16, 32, 64, 128, 256, 300, 300]
