"""What each duty does in one round."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tenure.leader.duties import reaper
from tenure.leader.duties.cleaner import Cleaner
from tenure.leader.duties.reaper import Contact, Reaper
from tenure.leader.duties.registry import DUTIES, DutyContext, create_duties
from tenure.leader.duties.stager import Stager
from tenure.leader.leader import Leader
from tenure.leader.reporting import Reporting
from tenure.leader.settings import LeaderSettings
from tenure.model.wakeup import Wakeup
from tenure.store import jobs
from tenure.store.link import Link
from tenure.store.target import DatabaseTarget
from tests.store.database import Database
from tests.store.forged_jobs import change_state
from tests.waiting import until


@pytest.fixture
async def link(database_target: DatabaseTarget) -> AsyncIterator[Link]:
    link = Link(database_target, "leader")
    yield link
    await link.close()


class OldContact(Contact):
    """In contact with PostgreSQL for the given time."""

    def __init__(self, age: float) -> None:
        super().__init__()
        self._age = age

    @property
    def age(self) -> float:
        return self._age


async def test_the_stager_promotes_what_is_due_in_the_order_of_time_with_new_places(link, database):
    [waiting] = database.enqueue({})
    late, early, middle, future = database.enqueue(*({"delay": 600} for _ in range(4)))
    for minutes, job_id in ((1, late), (9, early), (5, middle)):
        database.sql("update tenure.jobs set run_at = now() - make_interval(mins => %s) where id = %s", minutes, job_id)
    change_state(database.sql, "retry", middle)
    report = await Stager().run_once(link, database.term("stager"))
    assert (report.holds, report.touched) == (True, 3)
    assert report.rest == Stager.longest_rest
    order = [str(row[0]) for row in database.sql("select id from tenure.jobs where state = 'pending' order by position")]
    assert order == [waiting, early, middle, late]
    assert database.sql("select id::text, state from tenure.jobs where state <> 'pending'") == [(future, "scheduled")]


async def test_a_job_is_promoted_when_it_is_due_and_not_before(link, database):
    [job_id] = database.enqueue({"delay": 1.5})
    term = database.term("stager")
    assert (await Stager().run_once(link, term)).touched == 0
    assert database.job(job_id)["state"] == "scheduled"

    await until(lambda: database.sql("select run_at <= clock_timestamp() from tenure.jobs"), is_=[(True,)])

    assert (await Stager().run_once(link, term)).touched == 1
    assert database.job(job_id)["state"] == "pending"


async def test_a_job_that_is_retried_is_behind_those_that_were_enqueued_meanwhile(link, database):
    [failed] = database.enqueue({})
    claim = database.claim(database.worker())
    [meanwhile] = database.enqueue({})
    database.run(jobs.move(claim.outcomes(state="retry", delay=0, error="oh")))
    await Stager().run_once(link, database.term("stager"))
    assert database.sql("select id::text from tenure.jobs where state = 'pending' order by position") == [(meanwhile,), (failed,)]


async def test_the_stager_rests_until_the_next_job_is_due(link, database):
    database.enqueue({"delay": 0.8})
    report = await Stager().run_once(link, database.term("stager"))
    assert 0 < report.rest <= 0.8


async def test_the_stager_continues_at_once_when_there_may_be_more(link, database):
    stager = Stager()
    stager.batch = 2
    database.enqueue(*({"delay": 60} for _ in range(3)))
    database.sql("update tenure.jobs set run_at = now()")
    term = database.term("stager")
    first, second = await stager.run_once(link, term), await stager.run_once(link, term)
    assert (first.touched, first.rest) == (2, 0.0)
    assert (second.touched, second.rest) == (1, Stager.longest_rest)


async def test_the_stager_notifies_the_queues_of_promoted_jobs(link, database):
    sent: list[Wakeup] = []
    database.enqueue({"delay": 60}, {"delay": 60, "queue": "mail"}, {"delay": 60, "queue": "mail"})
    database.sql("update tenure.jobs set run_at = now()")
    await Stager(Reporting(sent.append)).run_once(link, database.term("stager"))
    assert sorted(sent) == [Wakeup.new_jobs("default"), Wakeup.new_jobs("mail")]


async def test_a_job_scheduled_sooner_than_the_next_look_wakes_the_stager(database_target, database):
    leader = Leader(database_target)
    leader.start()
    await until(lambda: "stager" in leader.duties_held)
    database.enqueue({"delay": 0.2})
    leader.on_wakeup(Wakeup.job_scheduled())
    await until(lambda: database.sql("select state from tenure.jobs"), is_=[("pending",)], within=Stager.longest_rest)
    await leader.stop()


@pytest.mark.parametrize(
    ("age", "condemned"), [(Reaper.patience - 0.1, 0), (Reaper.patience, 1)], ids=["too short", "long enough"]
)
async def test_the_reaper_condemns_only_after_unbroken_contact_of_its_own(link, database, age, condemned):
    worker = database.worker()
    database.enqueue({})
    database.claim(worker)
    database.sql("update tenure.workers set expires_at = now() - interval '1 hour'")
    report = await Reaper(OldContact(age)).run_once(link, database.term("reaper"))
    assert report.touched == 2 * condemned
    assert database.sql("select state, crashes from tenure.jobs") == [("pending", 1) if condemned else ("running", 0)]
    assert database.sql("select count(*) from tenure.workers") == [(1 - condemned,)]


async def test_the_reaper_leaves_living_workers_alone(link, database):
    worker = database.worker(ttl=60)
    database.enqueue({})
    database.claim(worker)
    report = await Reaper(OldContact(1000)).run_once(link, database.term("reaper"))
    assert report.touched == 0
    assert database.sql("select state from tenure.jobs") == [("running",)]


async def test_the_reaper_requeues_jobs_whose_worker_has_no_row(link, database):
    worker = database.worker(ttl=60)
    [job_id] = database.enqueue({})
    database.claim(worker)
    database.sql("delete from tenure.workers")
    report = await Reaper(Contact()).run_once(link, database.term("reaper"))
    assert report.touched == 1
    assert database.job(job_id)["state"] == "pending"
    assert database.sql("select count(*) from tenure.workers") == [(0,)]


async def test_the_reaper_requeues_jobs_whose_claim_has_no_row(link, database, monkeypatch):
    """Part by part, however many jobs there are: one search continues where the last one ended."""
    searched: list[str | None] = []

    def look_at_few(term, *, after, pick):
        searched.append(after)
        return condemn_unknown(term, after=after, look=4, pick=pick)

    condemn_unknown = reaper.workers.condemn_unknown
    monkeypatch.setattr(reaper.workers, "condemn_unknown", look_at_few)
    worker = database.worker()
    ids = sorted(database.enqueue(*({} for _ in range(10))))
    database.claim(worker)
    database.sql("delete from tenure.claims")
    duty, term = Reaper(Contact()), database.term("reaper")
    duty.unknown_every = 0.0
    touched = [(await duty.run_once(link, term)).touched for _ in range(4)]
    assert (touched, searched) == ([4, 4, 2, 0], [None, ids[3], ids[7], None])
    assert database.sql("select state, crashes, count(*) from tenure.jobs group by 1, 2") == [("pending", 1, 10)]
    assert database.sql("select id::text from tenure.workers") == [(worker,)]


def test_contact_is_broken_by_silence_and_by_failure(monkeypatch):
    clock = [100.0]
    monkeypatch.setattr(reaper, "boottime", lambda: clock[0])
    contact = Contact()

    def later(seconds: float) -> None:
        clock[0] += seconds

    for _ in range(3):
        later(contact.longest_silence)
        contact.touch()
    assert contact.age == 3 * contact.longest_silence
    later(contact.longest_silence + 1)
    contact.touch()
    assert contact.age == 0.0
    later(5)
    assert contact.age == 5.0
    contact.broke()
    assert contact.age == 0.0


async def test_jobs_whose_own_lease_expired_are_requeued_and_the_third_time_dead_lettered(link, database):
    [job_id] = database.enqueue({})
    term, reaper = database.term("reaper"), Reaper(Contact())
    for crashes in (1, 2, 3):
        database.claim(database.worker(), leases={"work": 0})
        report = await reaper.run_once(link, term)
        job = database.job(job_id)
        assert (report.touched, job["crashes"], job["attempt"]) == (1, crashes, 0)
    assert job["state"] == "dead_letter"


@pytest.mark.slow
async def test_a_reader_of_history_keeps_the_cleaner_waiting_but_not_the_reaper(fresh_dsn):
    """Dropping a partition waits for a lock that a long report holds: that is not an outage."""
    with Database(fresh_dsn) as database, Database(fresh_dsn) as reader:
        database.sql(
            "create table tenure.history_20200101 partition of tenure.history for values from ('2020-01-01') to ('2020-01-02')"
        )
        leader = Leader(DatabaseTarget.at(fresh_dsn))
        with reader.connection.transaction():
            reader.sql("select count(*) from tenure.history")
            leader.start()
            try:
                await until(lambda: leader.duties_held, is_=sorted(DUTIES))
                await until(lambda: leader.contact.age > 5.0, within=8)
            finally:
                await leader.stop()


async def test_the_cleaner_reports_what_it_did_and_rests(link, database):
    term = database.term("cleaner")
    report = await Cleaner(7 * 86400.0, 30 * 86400.0).run_once(link, term)
    assert (report.holds, report.rest) == (True, 1200.0)
    database.end_term("cleaner")
    assert not (await Cleaner(7 * 86400.0, 30 * 86400.0).run_once(link, term)).holds


async def test_a_duty_of_a_stale_leader_returns_that_it_does_not_hold(link, database):
    for duty in (Stager(), Reaper(Contact())):
        term = database.term(duty.name)
        database.end_term(duty.name)
        assert not (await duty.run_once(link, term)).holds


def test_the_registry_lists_every_duty_by_its_own_name():
    context = DutyContext(settings=LeaderSettings(), reporting=Reporting(), contact=Contact(), not_delivering=lambda: False)
    assert sorted(DUTIES) == ["cleaner", "cron", "doctor", "reaper", "resolver", "rollup", "stager"]
    assert [duty.name for duty in create_duties(context)] == list(DUTIES)
