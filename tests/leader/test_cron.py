"""What the leader does with planned times: by the policies, and at most once even if leaders change or die."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import datetime, timedelta
from uuid import uuid4

import pytest

from tenure import ConfigError, Tenure
from tenure.leader.duties.cron import Cron
from tenure.leader.leader import Leader
from tenure.leader.reporting import Reporting
from tenure.model.errors import StoreUnavailable
from tenure.model.event_bus import Events
from tenure.model.events import ScheduleTicked
from tenure.model.ids import uuid7
from tenure.model.wakeup import Wakeup
from tenure.store import schedules
from tenure.store.duty_link import Contended, DutyLink
from tenure.store.link import Link
from tenure.store.target import DatabaseTarget
from tests.leader.plans import T0, DyingLink, LossyLink, SleepyLink, at, finish, jobs, plan, ticks
from tests.store.database import Database
from tests.store.forged_jobs import change_state
from tests.store.locks import meanwhile, waits_for_a_lock
from tests.waiting import until

RETENTION = 7 * 86400.0


@pytest.fixture
async def link(database_target: DatabaseTarget) -> AsyncIterator[Link]:
    link = Link(database_target, "leader", hot=True)
    yield link
    await link.close()


class Round:
    """A leader that runs a round when the test asks for it."""

    def __init__(self, database: Database, link: Link) -> None:
        self.database, self.link, self.cron = database, link, Cron(RETENTION)
        self.term = database.term("cron")

    async def look(self, seconds: float) -> None:
        """Until there is nothing more to do at that time."""
        for _ in range(100):
            report = await self.cron.run_once(self.link, self.term, now=at(seconds))
            assert report.holds
            if report.rest > 0:
                return
        raise AssertionError("it never rests")


@pytest.fixture
def leader(database: Database, link: Link) -> Round:
    return Round(database, link)


async def test_a_planned_time_becomes_a_job_when_it_has_come(leader, database):
    plan(database, queue="mail", priority="high", max_attempts=7, timeout=12.0, capability="gpu", input={"to": "ann"})
    await leader.look(59.9)
    assert (ticks(database), jobs(database)) == ([], [])
    await leader.look(60)
    assert (ticks(database), jobs(database)) == ([(60, "enqueued", 1)], [(60, False)])
    [row] = database.sql(
        "select kind, queue, priority, max_attempts, timeout, capability, input, enqueued_by, state, key from tenure.jobs"
    )
    assert row == ("work", "mail", 75, 7, 12.0, "gpu", {"to": "ann"}, "schedule s", "pending", None)
    await leader.look(119)
    assert len(jobs(database)) == 1


async def test_a_job_expires_that_long_after_it_was_enqueued_or_is_due(leader, database):
    plan(database, expires="10m")
    plan(database, "spread", expires="10m", jitter="30s")
    plan(database, "never")
    await leader.look(60)
    rows = database.sql("select system -> 'schedule' ->> 'name', expires_at, run_at from tenure.jobs")
    expiries = {name: (expires_at, run_at) for name, expires_at, run_at in rows}
    assert expiries["s"] == (at(660), None)
    assert expiries["never"] == (None, None)
    expires_at, run_at = expiries["spread"]
    assert expires_at - run_at == timedelta(minutes=10)


async def test_a_job_of_a_queued_time_expires_after_its_release(leader, database):
    plan(database, expires="10m", overlap="queue")
    await leader.look(60)
    await leader.look(120)
    finish(database)
    await leader.look(121)
    [(after,)] = database.sql("select extract(epoch from expires_at - enqueued_at)::float8 from tenure.jobs")
    assert after == pytest.approx(600, abs=1)


async def test_it_rests_until_the_next_time_and_no_longer_than_it_must(leader, database):
    plan(database)
    await leader.look(1)
    report = await leader.cron.run_once(leader.link, leader.term, now=at(58))
    assert report.rest == 2.0
    report = await leader.cron.run_once(leader.link, leader.term, now=at(1))
    assert report.rest == Cron.longest_rest


async def test_the_queues_of_enqueued_jobs_are_notified(leader, database):
    sent: list[Wakeup] = []
    leader.cron = Cron(RETENTION, Reporting(sent.append))
    plan(database, "a", queue="mail")
    plan(database, "b", queue="mail")
    plan(database, "c", queue="post")
    await leader.look(60)
    assert sorted(sent) == [Wakeup.new_jobs("mail"), Wakeup.new_jobs("post")]


async def test_the_stager_is_notified_of_enqueued_jobs_that_are_to_run_later(leader, database):
    sent: list[Wakeup] = []
    leader.cron = Cron(RETENTION, Reporting(sent.append))
    plan(database, "now", queue="mail")
    plan(database, "later", queue="post", jitter="30s")
    await leader.look(60)
    assert sorted(sent) == [Wakeup.job_scheduled(), Wakeup.new_jobs("mail")]


# Overlap


async def test_skip_leaves_out_what_comes_while_an_earlier_job_is_live(leader, database):
    plan(database)
    await leader.look(60)
    await leader.look(120)
    assert ticks(database) == [(60, "enqueued", 1), (120, "skipped", 1)]
    finish(database)
    await leader.look(180)
    assert ticks(database)[-1] == (180, "enqueued", 1)
    assert jobs(database) == [(180, False)]


async def test_a_dead_letter_does_not_stop_its_schedule(leader, database):
    plan(database)
    await leader.look(60)
    change_state(database.sql, "dead_letter")
    await leader.look(120)
    assert [outcome for _, outcome, _ in ticks(database)] == ["enqueued", "enqueued"]


async def test_allow_asks_for_no_earlier_job(leader, database):
    plan(database, overlap="allow")
    for seconds in (60, 120, 180):
        await leader.look(seconds)
    assert [planned for planned, _ in jobs(database)] == [60, 120, 180]


async def test_overlap_queue_enqueues_one_after_the_other_in_order_and_loses_none(leader, database):
    plan(database, overlap="queue")
    for seconds in (60, 120, 180):
        await leader.look(seconds)
    assert ticks(database) == [(60, "enqueued", 1), (120, "queued", 1), (180, "queued", 1)]
    done = []
    for seconds in (190, 191, 192):
        [(planned, _)] = jobs(database)
        done.append(planned)
        finish(database)
        await leader.look(seconds)
    assert done == [60, 120, 180]
    assert jobs(database) == []
    assert {outcome for _, outcome, _ in ticks(database)} == {"enqueued"}


async def test_what_waited_long_is_late(leader, database):
    plan(database, overlap="queue")
    await leader.look(60)
    await leader.look(120)
    finish(database)
    await leader.look(179)
    await leader.look(181)
    assert jobs(database) == [(120, False)]
    finish(database)
    await leader.look(240)
    assert jobs(database) == [(180, False)]
    finish(database)
    database.sql("update tenure.schedules set next_at = %s", at(1000))
    await leader.look(500)
    assert jobs(database) == [(240, True)]


async def test_the_line_has_an_end(leader, database):
    plan(database, overlap="queue", catch_up_limit=2)
    for number in range(1, 6):
        await leader.look(60 * number)
    assert [outcome for _, outcome, _ in ticks(database)] == ["enqueued", "queued", "queued", "skipped", "skipped"]


async def test_a_paused_schedule_keeps_its_line_and_a_deleted_one_loses_it(leader, database):
    for name in ("paused", "deleted"):
        plan(database, name, overlap="queue")
    await leader.look(60)
    await leader.look(120)
    database.run(schedules.pause("paused", reason=None, by=None))
    database.run(schedules.delete("deleted"))
    finish(database)
    await leader.look(130)
    assert jobs(database, "paused") == jobs(database, "deleted") == []
    assert ticks(database, "paused")[-1] == (120, "queued", 1)
    assert ticks(database, "deleted")[-1] == (120, "skipped", 1)


# Planned times that passed without a leader


@pytest.mark.parametrize(
    ("catch_up", "wanted"),
    [
        ("none", [(600, "missed", 10)]),
        ("one", [(600, "missed", 9), (6000, "enqueued", 1)]),
        ("all", [(600 * n, "enqueued", 1) for n in range(1, 11)]),
    ],
)
async def test_after_downtime_as_the_policy_has_it(leader, database, catch_up, wanted):
    plan(database, every="600s", catch_up=catch_up, overlap="allow")
    await leader.look(6100)
    assert ticks(database) == wanted
    await leader.look(6600)
    assert ticks(database) == [*wanted, (6600, "enqueued", 1)]


async def test_a_caught_up_job_knows_that_it_is_late(leader, database):
    plan(database, every="600s", catch_up="all", overlap="allow")
    await leader.look(1250)
    assert jobs(database) == [(600, True), (1200, False)]


async def test_all_with_skip_comes_to_one_job(leader, database):
    plan(database, catch_up="all")
    await leader.look(180)
    assert ticks(database) == [(60, "enqueued", 1), (120, "skipped", 1), (180, "skipped", 1)]


async def test_all_has_a_limit(leader, database):
    plan(database, catch_up="all", overlap="allow", catch_up_limit=2)
    await leader.look(300)
    assert ticks(database) == [(60, "missed", 3), (240, "enqueued", 1), (300, "enqueued", 1)]


async def test_a_month_without_a_leader_is_gone_through_and_counted(leader, database):
    plan(database, every="60s")
    month = 30 * 86400
    await leader.look(month)
    found = ticks(database)
    assert sum(times for *_, times in found) == month // 60
    assert found[-1] == (month, "enqueued", 1)
    assert len(found) <= month // 60 // 1000 + 2


async def test_jitter_starts_the_job_later_and_the_planned_time_stays(leader, database):
    plan(database, jitter="30s", overlap="allow")
    for number in range(1, 11):
        await leader.look(60 * number)
    rows = database.sql(
        "select state, extract(epoch from run_at - (system -> 'schedule' ->> 'for')::timestamptz) from tenure.jobs"
    )
    assert {state for state, _ in rows} == {"scheduled"}  # its day is years from now
    assert all(0 < delay < 30 for _, delay in rows)
    assert len({delay for _, delay in rows}) == 10
    assert [planned for planned, _ in jobs(database)] == [60.0 * n for n in range(1, 11)]


# Decided by people meanwhile


async def test_a_paused_schedule_is_not_planned_and_continues_when_it_is_resumed(leader, database):
    plan(database)
    await leader.look(1)
    database.run(schedules.pause("s", reason="the printer", by="ann"))
    await leader.look(200)
    assert ticks(database) == []
    database.run(schedules.resume("s"))
    database.sql("update tenure.schedules set since = %s", at(200))  # by the clock of this test
    await leader.look(300)
    assert ticks(database) == [(240, "missed", 1), (300, "enqueued", 1)]


@pytest.mark.parametrize("meanwhile", ["pause", "delete", "retire", "change"])
async def test_what_is_decided_between_a_look_and_its_record_counts(database_target, database, meanwhile):
    plan(database)
    link = SleepyLink(database_target, "leader", hot=True)
    looking = asyncio.create_task(Cron(RETENTION).run_once(link, database.term("cron"), now=at(60)))
    await link.asleep.wait()
    match meanwhile:
        case "pause":
            database.run(schedules.pause("s", reason=None, by=None))
        case "delete":
            database.run(schedules.delete("s"))
            plan(database, every="45s")  # another one of that name
        case "retire":
            database.sql("update tenure.schedules set owner = 'shop:app'")
            database.run(schedules.reconcile("shop:app", [], supervisor_id=str(uuid4()), kinds=[]))
        case "change":
            database.sql("update tenure.schedules set every = 45, version = gen_random_uuid()")
    link.awake.set()
    assert (await looking).holds
    await link.close()
    assert (ticks(database), jobs(database)) == ([], [])


async def test_a_run_that_is_asked_for_between_a_look_and_its_record_is_an_earlier_job(database_target, database):
    plan(database)
    link, term = SleepyLink(database_target, "leader", hot=True), database.term("cron")
    looking = asyncio.create_task(Cron(RETENTION).run_once(link, term, now=at(60)))
    await link.asleep.wait()
    assert database.run(schedules.run("s", uuid7(), input=None, by="ann"))
    link.awake.set()
    assert (await looking).touched == 0
    assert (await Cron(RETENTION).run_once(link, term, now=at(60))).touched == 0
    await link.close()
    assert [outcome for _, outcome, _ in ticks(database)] == ["enqueued", "skipped"]


async def test_a_line_is_not_moved_on_while_a_run_is_asked_for(dsn, database, other, leader):
    """The release waits for the schedule's row, and what it saw of its jobs before is out of date."""
    plan(database, overlap="queue")
    await leader.look(60)
    await leader.look(120)
    finish(database)
    with Database(dsn) as third:
        with other.connection.transaction():
            other.run(schedules.run("s", uuid7(), input=None, by="ann"))
            query = schedules.release_ticks(leader.term, limit=10, now=at(130))
            released = meanwhile(lambda: third.run(query))
            await waits_for_a_lock(database)
        assert released()[0][:2] == (True, 0)
        assert third.run(query)[0][:2] == (True, 0)
    assert len(jobs(database)) == 1


async def test_a_schedule_that_cannot_be_worked_out_blocks_no_other(leader, database, caplog):
    plan(database, "good")
    plan(database, "bad", cron="0 9 * * *")
    database.sql("update tenure.schedules set timezone = 'Atlantis/Capital' where name = 'bad'")
    for seconds in (60, 120):
        await leader.look(seconds)
    assert len(ticks(database, "good")) == 2
    assert [record.schedule for record in caplog.records if "schedule failed" in record.getMessage()] == ["bad"]


async def test_what_postgresql_refuses_blocks_no_other(leader, database, caplog):
    plan(database, "good")
    plan(database, "bad")
    database.sql("create function tenure.refuse() returns trigger language plpgsql as $$ begin raise exception 'no'; end $$")
    database.sql(
        "create trigger refuse before insert on tenure.ticks "
        "for each row when (new.schedule = 'bad') execute function tenure.refuse()"
    )
    try:
        await leader.look(60)
    finally:
        database.sql("drop function tenure.refuse() cascade")
    assert (ticks(database, "good"), ticks(database, "bad")) == ([(60, "enqueued", 1)], [])
    assert [record.schedule for record in caplog.records if "schedule failed" in record.getMessage()] == ["bad"]


async def test_old_ticks_go_but_not_those_of_live_jobs_or_in_line(leader, database):
    plan(database, overlap="queue")
    plan(database, "other", overlap="allow")
    await leader.look(60)
    await leader.look(120)
    database.sql("delete from tenure.jobs where system -> 'schedule' ->> 'name' = 'other'")
    database.run(schedules.clean_ticks(leader.term, limit=100, keep=RETENTION, now=at(100 + RETENTION)))
    assert (len(ticks(database)), ticks(database, "other")) == (2, [(120, "enqueued", 1)])
    database.run(schedules.clean_ticks(leader.term, limit=100, keep=RETENTION, now=at(200 + RETENTION)))
    assert (len(ticks(database)), ticks(database, "other")) == (2, [])


# Leaders that die, sleep, or hear no answer


@pytest.mark.slow
async def test_two_thousand_ticks_over_twenty_leaders_are_recorded_once_each(database_target, database):
    """Every leader ends badly: killed before it writes, cut off after it wrote, or asleep while the next one leads."""
    names = [f"s{n:02d}" for n in range(20)]
    for name in names:
        plan(database, name, every="1s", overlap="allow", catch_up="all", catch_up_limit=1000)
    sleepers: list[tuple[SleepyLink, asyncio.Task[object]]] = []
    for number in range(20):
        database.end_term("cron")
        now = 5 * (number + 1)
        match number % 4:
            case 0:
                await killed(database_target, database, now)
            case 1:
                await cut_off(database_target, database, now)
            case 2:
                sleepers.append(await asleep(database_target, database, now))
            case 3:
                await in_order(database_target, database, now)
    for link, looking in sleepers:
        link.awake.set()
        assert not (await looking).holds
        await link.close()
    for name in names:
        assert [planned for planned, *_ in ticks(database, name)] == [float(n) for n in range(1, 101)]
        assert [planned for planned, _ in jobs(database, name)] == [float(n) for n in range(1, 101)]
    assert database.sql("select count(*), count(distinct job_id) from tenure.ticks where outcome = 'enqueued'") == [(2000, 2000)]
    assert database.sql("select count(*) from tenure.jobs j join tenure.ticks t on t.job_id = j.id") == [(2000,)]


async def killed(database_target: DatabaseTarget, database: Database, now: float) -> None:
    link = DyingLink(database_target, "leader", hot=True)
    with suppress(asyncio.CancelledError):
        await Cron(RETENTION).run_once(link, database.term("cron"), now=at(now))
    await link.close()


async def cut_off(database_target: DatabaseTarget, database: Database, now: float) -> None:
    """And then repeats what it has done already."""
    link = LossyLink(database_target, "leader", hot=True)
    link.lose = "schedules/record_ticks"
    cron, term = Cron(RETENTION), database.term("cron")
    with pytest.raises(StoreUnavailable):
        await cron.run_once(link, term, now=at(now))
    assert (await cron.run_once(link, term, now=at(now))).touched == 0
    await link.close()


async def asleep(database_target: DatabaseTarget, database: Database, now: float) -> tuple[SleepyLink, asyncio.Task[object]]:
    link = SleepyLink(database_target, "leader", hot=True)
    looking = asyncio.create_task(Cron(RETENTION).run_once(link, database.term("cron"), now=at(now)))
    await link.asleep.wait()
    return link, looking


async def in_order(database_target: DatabaseTarget, database: Database, now: float) -> None:
    link = Link(database_target, "leader", hot=True)
    await Cron(RETENTION).run_once(link, database.term("cron"), now=at(now))
    await link.close()


async def test_two_leaders_at_the_same_time_record_nothing_twice(database_target, database):
    """As if the lease did not exist: the schedule's version alone makes it once."""
    plan(database, every="1s", overlap="allow", catch_up="all")
    term = database.term("cron")
    links = [SleepyLink(database_target, "leader", hot=True) for _ in range(5)]
    looking = [asyncio.create_task(Cron(RETENTION).run_once(link, term, now=at(50))) for link in links]
    for link in links:
        await link.asleep.wait()
    for link in links:
        link.awake.set()
    reports = await asyncio.gather(*looking)
    for link in links:
        await link.close()
    assert sorted(report.touched for report in reports) == [0, 0, 0, 0, 50]
    assert [planned for planned, _ in jobs(database)] == [float(n) for n in range(1, 51)]


async def test_a_leader_that_was_asleep_while_another_was_elected_records_nothing(database_target, database):
    """Although the schedule has not changed since it was read."""
    plan(database)
    link, looking = await asleep(database_target, database, 60)
    database.end_term("cron")
    database.term("cron")
    before = database.sql("select * from tenure.schedules")
    link.awake.set()
    assert not (await looking).holds
    await link.close()
    assert (ticks(database), jobs(database), database.sql("select * from tenure.schedules")) == ([], [], before)


async def test_a_clock_that_goes_back_brings_no_time_again(leader, database):
    plan(database, overlap="allow", catch_up="all")
    await leader.look(300)
    database.sql("update tenure.schedules set since = %s, next_at = null, version = gen_random_uuid()", T0)
    await leader.look(240)
    await leader.look(360)
    assert [planned for planned, _ in jobs(database)] == [60, 120, 180, 240, 300, 360]


async def test_a_stale_leader_releases_and_cleans_nothing(leader, database):
    plan(database, overlap="queue")
    await leader.look(60)
    await leader.look(120)
    finish(database)
    database.end_term("cron")
    database.term("cron")
    assert not (await leader.cron.run_once(leader.link, leader.term, now=at(130))).holds
    [(holds, released, *_)] = database.run(schedules.release_ticks(leader.term, limit=10, now=at(130)))
    [(still_holds, removed, _)] = database.run(schedules.clean_ticks(leader.term, limit=10, keep=0, now=at(10**6)))
    assert (holds, released, still_holds, removed) == (False, 0, False, 0)
    assert ticks(database) == [(60, "enqueued", 1), (120, "queued", 1)]


# In a leader that lives


async def test_a_leader_that_is_notified_of_a_new_schedule_plans_it_at_once(database_target, database):
    leader = Leader(database_target)
    leader.start()
    await until(lambda: "cron" in leader.duties_held)
    plan(database, every="3600s", since=T0)
    leader.on_wakeup(Wakeup.schedule_changed())
    await until(lambda: database.sql("select next_at is not null from tenure.schedules"), is_=[(True,)], within=Cron.longest_rest)
    await leader.stop()


# Clocks that are set


async def test_a_clock_that_was_ahead_for_a_round_does_not_stop_the_schedule(leader, database, caplog):
    plan(database, overlap="allow")
    await leader.look(60)
    month = 30 * 86400.0
    await leader.look(month)
    await leader.look(120)  # the clock is right again: that is noticed now
    await leader.look(121)
    for seconds in (180, 240):
        await leader.look(seconds)
    near = [(planned, outcome) for planned, outcome, _ in ticks(database) if planned < 86400]
    assert near == [(60, "enqueued"), (120, "missed"), (180, "enqueued"), (240, "enqueued")]
    assert [record.levelname for record in caplog.records if "was ahead" in record.getMessage()] == ["WARNING"]
    assert [planned for planned, _ in jobs(database)] == [60, 180, 240, month]


async def test_a_time_that_had_its_job_while_the_clock_was_ahead_has_no_second_one(leader, database):
    plan(database, every="600s", overlap="allow", catch_up="all")
    await leader.look(1800)
    await leader.look(10)
    for seconds in (11, 600, 1200, 1800, 2400):
        await leader.look(seconds)
    assert [planned for planned, _ in jobs(database)] == [600, 1200, 1800, 2400]


async def test_after_the_clock_was_set_back_leases_and_rates_count_from_now(leader, database):
    """The clock was an hour ahead when these were written. The worker is dead, so no process writes them again."""
    await leader.look(3600)
    worker = database.worker(ttl=15)
    database.enqueue({})
    database.claim(worker, leases={"work": 120})
    hour = "interval '1 hour'"
    database.sql(f"update tenure.workers set heartbeat_at = heartbeat_at + {hour}, expires_at = expires_at + {hour}")
    database.sql(f"update tenure.jobs set lease_until = lease_until + {hour}")
    database.sql(f"update tenure.claims set at = at + {hour}")
    database.sql(
        f"insert into tenure.starts select 'kind:work', now() + {hour}, now() + {hour}, now() + {hour} + interval '1 minute', 5"
    )
    report = await leader.cron.run_once(leader.link, leader.term)
    assert report.holds  # years behind the clock of this test: set back, and seen to at the next look
    await leader.cron.run_once(leader.link, leader.term)
    left = (
        "select (select extract(epoch from expires_at - now()) < 20 from tenure.workers),"
        " (select extract(epoch from lease_until - now()) < 130 from tenure.jobs),"
        " (select at <= now() from tenure.claims),"
        " (select extract(epoch from ended - now()) < 5 and extract(epoch from forget_at - now()) < 70 from tenure.starts)"
    )
    assert database.sql(left) == [(True, True, True, True)]


# What is logged for times without a job


async def test_missed_and_skipped_times_are_logged_once_with_their_schedule(leader, database, caplog):
    caplog.set_level("INFO", "tenure.schedules")
    plan(database)
    await leader.look(300)
    await leader.look(360)
    await leader.look(361)
    told = [record for record in caplog.records if record.name == "tenure.schedules"]
    assert [(record.levelname, record.schedule, record.times) for record in told] == [("WARNING", "s", 4), ("INFO", "s", 1)]
    assert [datetime.fromisoformat(record.planned_at) for record in told] == [at(60), at(360)]


async def test_the_levels_of_missed_and_skipped_times_are_settings(database_target, leader, database, caplog):
    caplog.set_level("DEBUG", "tenure.schedules")
    settings = Tenure("postgresql://", log_schedule_missed="error", log_schedule_skipped="debug").settings.leader
    [leader.cron] = [duty for duty in Leader(database_target, settings)._duties.values() if isinstance(duty, Cron)]
    plan(database)
    await leader.look(300)
    await leader.look(360)
    told = [record.levelname for record in caplog.records if record.name == "tenure.schedules"]
    assert told == ["ERROR", "DEBUG"]


@pytest.mark.parametrize("setting", ["log_schedule_missed", "log_schedule_skipped"])
def test_a_level_of_schedule_records_that_does_not_exist_is_refused(setting):
    with pytest.raises(ConfigError, match=rf"{setting}.*'loud' is not a log level"):
        _ = Tenure("postgresql://", **{setting: "loud"}).settings


async def test_the_outcome_of_each_planned_time_is_an_event_for_subscribers(leader, database):
    seen: list[ScheduleTicked] = []
    events = Events()
    events.subscribe((ScheduleTicked,), seen.append)
    leader.cron = Cron(RETENTION, Reporting(events=events))
    plan(database, overlap="queue")
    await leader.look(180)
    await leader.look(240)
    finish(database)
    await leader.look(241)
    told = [(tick.outcome, tick.planned_at, tick.times, tick.until, tick.job_id is not None) for tick in seen]
    assert told == [
        ("missed", at(60), 2, at(120), False),
        ("enqueued", at(180), 1, None, True),
        ("queued", at(240), 1, None, False),
        ("enqueued", at(240), 1, None, True),
    ]
    assert {tick.schedule for tick in seen} == {"s"}


async def test_planned_times_are_recorded_while_another_table_is_locked(database_target, database, other):
    cron, term = Cron(RETENTION), database.term("cron")
    plan(database)
    async with DutyLink(database_target, lock_timeout=0.2) as link:
        other.sql("begin")
        other.sql("lock table tenure.declarations in access exclusive mode")
        with pytest.raises(Contended):
            await cron.run_once(link, term, now=at(60))
        assert len(ticks(database)) == 1
        other.sql("rollback")
