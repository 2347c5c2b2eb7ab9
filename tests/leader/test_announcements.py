"""What duties report: events to subscribers, notifications to waiting processes, and a log line with the jobs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, NamedTuple
from uuid import UUID

import pytest

from tenure import Context, JobDue, JobReaped, Tenure
from tenure.leader.duties.reaper import Contact, Reaper
from tenure.leader.duties.stager import Stager
from tenure.leader.reporting import Reporting
from tenure.leader.requeue import requeue_jobs
from tenure.model.event_bus import Events
from tenure.model.events import Event
from tenure.model.wakeup import MOST_NAMED, Topic, Wakeup
from tenure.store import jobs
from tenure.store.link import Link
from tenure.store.target import DatabaseTarget
from tests.store.database import Database
from tests.waiting import until


@pytest.fixture
async def link(database_target: DatabaseTarget) -> AsyncIterator[Link]:
    link = Link(database_target, "leader", hot=True)
    yield link
    await link.close()


class Reports(NamedTuple):
    """All that was reported, and by what."""

    wakeups: list[Wakeup]
    seen: list[Event]
    reporting: Reporting


@pytest.fixture
def reports() -> Reports:
    wakeups: list[Wakeup] = []
    seen: list[Event] = []
    events = Events()
    events.subscribe((), seen.append)
    return Reports(wakeups, seen, Reporting(wakeups.append, events))


async def test_each_promoted_job_is_an_event(link, database, reports):
    ids = database.enqueue({"delay": 60, "queue": "mail"}, {"delay": 60, "kind": "other"})
    database.sql("update tenure.jobs set run_at = now()")
    await Stager(reports.reporting).run_once(link, database.term("stager"))
    told = {(event.job_id, event.kind, event.queue) for event in reports.seen}
    assert told == {(UUID(ids[0]), "work", "mail"), (UUID(ids[1]), "other", "default")}
    assert {type(event) for event in reports.seen} == {JobDue}


async def test_promoted_jobs_are_not_listed_without_a_subscriber(database):
    database.enqueue({"delay": 60})
    database.sql("update tenure.jobs set run_at = now()")
    assert database.fetch(jobs.promote(database.term("stager"), limit=10))[0].jobs == []


@pytest.mark.parametrize("why", ["crashed", "lease_lost", "stopped"])
async def test_jobs_of_dead_workers_are_events_that_say_why(link, database, reports, caplog, why):
    how = "expired" if why == "lease_lost" else why
    caplog.set_level("INFO", "tenure")
    worker = database.worker()
    database.sql("update tenure.workers set name = 'mail-1'")
    first, second = database.enqueue({}, {"kind": "poison", "queue": "mail"})
    database.sql("update tenure.jobs set crashes = 2 where kind = 'poison'")
    database.claim(worker, queues=["default", "mail"], kinds=["work", "poison"])
    database.condemn(worker, how)
    await requeue_jobs(link, worker, reports.reporting)
    blamed = how != "stopped"
    holder: dict[str, Any] = {"worker_id": UUID(worker), "worker": "mail-1", "host": "here"}
    assert sorted(reports.seen, key=lambda event: event.kind) == [
        JobReaped(job_id=UUID(second), kind="poison", queue="mail", why=why, quarantined=blamed, **holder),
        JobReaped(job_id=UUID(first), kind="work", queue="default", why=why, quarantined=False, **holder),
    ]
    assert {Wakeup.new_jobs("default"), Wakeup.new_jobs("mail")} <= set(reports.wakeups)
    [record] = [record for record in caplog.records if "requeued" in record.getMessage()]
    assert record.levelname == ("WARNING" if blamed else "INFO")
    assert (record.worker_id, record.jobs) == (worker, 1 if blamed else 2)
    assert (record.worker, record.host) == ("mail-1", "here")
    assert database.sql("select distinct worker from tenure.incidents") == [("mail-1",)]
    assert first in record.job_ids
    assert (second in record.job_ids) == (not blamed)


@pytest.mark.parametrize(
    ("how", "error"),
    [
        ("crashed", "quarantined: its worker died 3 times while running it"),
        ("expired", "quarantined: its worker died 3 times while running it"),
        (None, "quarantined: it let its lease run out 3 times"),
    ],
    ids=["crash", "lease of the worker", "lease of the job"],
)
async def test_a_quarantined_job_is_one_error_with_the_command_to_replay_it(link, database, caplog, how, error):
    [job] = database.enqueue({"kind": "poison"})
    database.sql("update tenure.jobs set crashes = 2")
    worker = database.worker()
    database.claim(worker, kinds=["poison"], leases={"poison": 0} if how is None else {})
    if how is None:
        await Reaper(Contact()).run_once(link, database.term("reaper"))
    else:
        database.condemn(worker, how)
        await requeue_jobs(link, worker)
    [record] = caplog.records
    assert record.levelname == "ERROR"
    assert record.getMessage() == f"job {job} (poison) was {error}; to run it again: tenure jobs replay {job}"
    assert (record.job_id, record.kind, record.crashes, record.worker_id) == (job, "poison", 3, worker)


@pytest.mark.parametrize("how", ["crashed", None], ids=["crash", "lease of the job"])
async def test_a_client_that_waits_for_a_job_learns_at_once_that_it_is_quarantined(link, database, reports, how):
    awaited, _ = database.enqueue({}, {})
    database.run(jobs.watch(awaited, 60))
    database.sql("update tenure.jobs set crashes = 2")
    worker = database.worker()
    database.claim(worker, leases={"work": 0} if how is None else {})
    if how is None:
        await Reaper(Contact(), reports.reporting).run_once(link, database.term("reaper"))
    else:
        database.condemn(worker, how)
        await requeue_jobs(link, worker, reports.reporting)
    assert database.sql("select count(*) from tenure.jobs where state = 'dead_letter'") == [(2,)]
    assert [wakeup for wakeup in reports.wakeups if wakeup.topic is Topic.ENDED] == [Wakeup.job_ended(awaited)]


async def test_the_level_of_quarantined_jobs_is_that_of_dead_letters(link, database, caplog):
    database.enqueue({})
    database.sql("update tenure.jobs set crashes = 2")
    worker = database.worker()
    database.claim(worker)
    database.condemn(worker, "crashed")
    level = Tenure("postgresql://", log_dead_letter="critical").settings.leader.dead_letter_level
    await requeue_jobs(link, worker, Reporting(dead_letter_level=level))
    assert [record.levelname for record in caplog.records] == ["CRITICAL"]


async def test_the_run_that_lost_its_own_lease_is_notified_by_job_id(link, database, reports):
    [job_id] = database.enqueue({})
    worker = database.worker()
    database.claim(worker, leases={"work": 0})
    await Reaper(Contact(), reports.reporting).run_once(link, database.term("reaper"))
    assert set(reports.wakeups) == {Wakeup.new_jobs("default"), Wakeup.job_lost(job_id)}
    [event] = reports.seen
    assert (event.job_id, event.why, event.worker_id, event.quarantined) == (UUID(job_id), "expired", UUID(worker), False)
    assert event.host == "here"
    assert database.sql("select worker from tenure.incidents") == [("here:1",)]


async def test_if_very_many_jobs_are_lost_one_notification_is_for_all_runs(link, database, reports):
    database.enqueue(*({} for _ in range(MOST_NAMED + 1)))
    database.claim(database.worker(), limit=100, leases={"work": 0})
    await Reaper(Contact(), reports.reporting).run_once(link, database.term("reaper"))
    assert set(reports.wakeups) == {Wakeup.any_job_lost(), Wakeup.new_jobs("default")}


async def test_a_handler_that_lost_its_lease_is_aborted_before_it_looks_for_itself(dsn, database: Database):
    """Its own look comes every third of the worker's lease, which is an hour here."""
    app = Tenure(dsn, workers_lease_timeout_seconds=10_000.0)
    aborted: list[str] = []
    started = asyncio.Event()

    @app.job(lease="1s", max_attempts=1)
    async def silent(ctx: Context) -> None:
        if started.is_set():
            return
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            aborted.append(str(ctx.signal.reason))

    handle = await silent.enqueue()
    async with app.running():
        await started.wait()
        await until(lambda: aborted, is_=["taken_by_another_worker"])
        await handle.result(timeout="20s")
    await app.close()
