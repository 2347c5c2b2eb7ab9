"""`app.schedules`, `@app.cron` and `@app.duty`."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from tenure import ConfigError, Context, InvalidInput, ScheduleConflict, ScheduleNotFound, Tenure
from tenure.client.job import Job
from tenure.model.errors import StoreUnavailable
from tenure.model.schedules import schedule
from tenure.store import schedules as store
from tests.client.listening import notified
from tests.waiting import until


@pytest.fixture
async def schedules(app):
    yield app.schedules
    await app.close()


@pytest.fixture
def report(app: Tenure):
    @app.job(queue="mail", priority="high", max_attempts=5)
    async def report(to: str, copies: int = 1) -> str:
        return to * copies

    return report


async def test_a_new_schedule_has_the_defaults_of_its_job_and_the_leader_is_notified(schedules, report, other):
    other.sql("listen tenure")
    made = await schedules.create(
        "daily", report, "0 9 * * 1-5", timezone="Europe/Berlin", input={"to": "ann"}, jitter="5m", overlap="queue", by="ada"
    )
    assert await notified(other, 1) == {"schedules"}
    assert (made.name, made.kind, made.queue, made.priority, made.max_attempts) == ("daily", "report", "mail", 75, 5)
    assert (made.owner, made.changed_by, made.overlap, made.catch_up) == (None, "ada", "queue", "one")
    assert made.words == "at 09:00 on Monday through Friday, Europe/Berlin"
    assert made.next_at is not None
    assert made.next_at == made.upcoming(1)[0]
    assert made.upcoming(1)[0].strftime("%H:%M") == "09:00"
    assert [one.name for one in await schedules.list()] == ["daily"]
    assert await schedules.upcoming("daily", 3) == made.upcoming(3)


async def test_input_that_does_not_fit_is_refused_where_it_is_given(schedules, report):
    with pytest.raises(InvalidInput, match="copies"):
        await schedules.create("s", report, every="1m", input={"to": "ann", "copies": "many"})
    with pytest.raises(InvalidInput, match="input="):
        await schedules.create("s", report, every="1m")
    assert await schedules.find("s") is None


async def test_a_kind_that_this_app_does_not_know_is_taken_as_given(schedules):
    made = await schedules.create("s", "elsewhere", every="1m", input={"anything": [1]}, queue="far", priority=7)
    assert (made.kind, made.input, made.queue, made.priority, made.max_attempts) == ("elsewhere", {"anything": [1]}, "far", 7, 3)


async def test_a_name_is_taken_once(schedules, report):
    await schedules.create("s", report, every="1m", input={"to": "ann"})
    with pytest.raises(ScheduleConflict, match="exists already"):
        await schedules.create("s", report, every="1m", input={"to": "ann"})


async def test_what_cannot_be_is_refused(schedules, report):
    with pytest.raises(ConfigError, match="schedule 's': cron '99"):
        await schedules.create("s", report, "99 * * * *", input={"to": "ann"})
    with pytest.raises(ConfigError, match="limit"):
        await schedules.ticks("s", limit=0)


async def test_a_change_changes_what_is_given_and_nothing_else(schedules, report, database):
    before = await schedules.create("s", report, "0 9 * * *", timezone="Europe/Berlin", input={"to": "ann"}, jitter="1m")
    changed = await schedules.change("s", input={"to": "bob", "copies": 2}, catch_up="all", by="ada")
    assert (changed.input, changed.catch_up, changed.changed_by) == ({"to": "bob", "copies": 2}, "all", "ada")
    assert (changed.cron, changed.timezone, changed.jitter) == (before.cron, before.timezone, before.jitter)
    assert (changed.queue, changed.priority, changed.max_attempts) == ("mail", 75, 5)
    every = await schedules.change("s", every="90s", jitter=0)
    assert (every.cron, every.every, every.timezone) == (None, timedelta(seconds=90), "UTC")
    back = await schedules.change("s", cron="@daily")
    assert (back.cron, back.every) == ("@daily", None)
    assert (await schedules.change("s", cron="@daily")).changed_at == back.changed_at
    with pytest.raises(InvalidInput):
        await schedules.change("s", input={"copies": 1})
    with pytest.raises(ConfigError, match="did you mean 'skip'"):
        await schedules.change("s", overlap="skp")
    with pytest.raises(ScheduleNotFound):
        await schedules.change("t", cron="@daily")


async def test_changes_that_meet_are_both_done(schedules, report):
    await schedules.create("s", report, every="1h", input={"to": "ann"})
    options = [{"queue": "q"}, {"catch_up": "all"}, {"overlap": "allow"}, {"jitter": 5}, {"priority": 1}]
    await asyncio.gather(*[schedules.change("s", **option) for option in options])
    found = await schedules.find("s")
    assert (found.queue, found.catch_up, found.overlap, found.jitter, found.priority) == (
        "q",
        "all",
        "allow",
        timedelta(seconds=5),
        1,
    )


async def test_paused_and_resumed(schedules, report):
    await schedules.create("s", report, every="1m", input={"to": "ann"})
    await schedules.pause("s", reason="the printer", by="ada")
    found = await schedules.find("s")
    assert (found.paused, found.active, found.paused_by, found.pause_reason, found.next_at) == (
        True,
        False,
        "ada",
        "the printer",
        None,
    )
    assert await schedules.upcoming("s") == []
    assert await schedules.resume("s") is True
    assert await schedules.resume("s") is False
    assert (await schedules.find("s")).next_at is not None
    for verb in (schedules.pause, schedules.resume, schedules.upcoming, schedules.delete, schedules.run_now):
        with pytest.raises(ScheduleNotFound, match="schedule 'nobody' does not exist"):
            await verb("nobody")


async def test_one_that_begins_paused(schedules, report):
    made = await schedules.create("s", report, every="1m", input={"to": "ann"}, paused=True, by="ada")
    assert (made.paused, made.paused_by, made.next_at) == (True, "ada", None)


async def test_run_now_enqueues_a_job_of_it_and_records_the_actor(schedules, report, database):
    await schedules.create("s", report, every="1h", input={"to": "ann"})
    await schedules.pause("s")
    first = await schedules.run_now("s", by="ada")
    second = await schedules.run_now("s", input={"to": "bob"})
    status = await first.status()
    assert (status.kind, status.queue, status.priority, status.input, status.enqueued_by) == (
        "report",
        "mail",
        75,
        {"to": "ann"},
        "ada",
    )
    assert (status.meta, status.system["schedule"]["name"]) == (None, "s")
    assert (await second.status()).input == {"to": "bob"}
    newest, oldest = await schedules.ticks("s")
    assert (oldest.job_id, oldest.by, oldest.outcome, oldest.is_late) == (first.id, "ada", "enqueued", False)
    assert (newest.job_id, newest.job_state) == (second.id, "pending")
    assert await schedules.ticks("s", before=newest.planned_at) == [oldest]
    with pytest.raises(InvalidInput):
        await schedules.run_now("s", input={"nobody": 1})
    assert database.sql("select count(*) from tenure.jobs") == [(2,)]


async def test_a_run_whose_answer_was_lost_is_not_enqueued_twice(schedules, report, database, monkeypatch):
    await schedules.create("s", report, every="1h", input={"to": "ann"})
    session = schedules._runtime.session()
    fetch, calls = session.fetch, []

    async def lossy(query):
        rows = await fetch(query)
        calls.append(query.name)
        if calls.count("schedules/run_schedule") == 1 and query.name == "schedules/run_schedule":
            raise StoreUnavailable("the answer is lost")
        return rows

    monkeypatch.setattr(session, "fetch", lossy)
    handle = await schedules.run_now("s")
    assert calls.count("schedules/run_schedule") == 2
    assert database.sql("select id from tenure.jobs") == [(handle.id,)]
    assert database.sql("select job_id from tenure.ticks") == [(handle.id,)]


async def test_what_code_declares_is_changed_and_deleted_there(schedules, database):
    declared = [schedule(name="s", kind="work", every="1m").to_json()]
    database.run(store.reconcile("shop:app", declared, supervisor_id=str(uuid4()), kinds=["work"]))
    for refused in (schedules.change("s", queue="q"), schedules.delete("s")):
        with pytest.raises(ScheduleConflict, match="code of shop:app"):
            await refused
    database.sql("update tenure.schedules set retired_at = now()")
    assert await schedules.list() == []
    [retired] = await schedules.list(retired=True)
    assert (retired.active, retired.next_at) == (False, None)
    with pytest.raises(ScheduleConflict, match="retired"):
        await schedules.run_now("s")
    await schedules.delete("s")
    assert await schedules.list(retired=True) == []


def test_without_an_event_loop(app, report):
    schedules = app.schedules
    made = schedules.create_sync("s", "report", "@hourly", input={"to": "ann"})
    assert made.words == "at the start of every hour, UTC"
    schedules.pause_sync("s")
    assert schedules.resume_sync("s")
    assert schedules.change_sync("s", queue="other").queue == "other"
    assert schedules.run_now_sync("s").status_sync().queue == "other"
    assert len(schedules.ticks_sync("s")) == 1
    assert len(schedules.upcoming_sync("s", 2)) == 2
    assert [one.name for one in schedules.list_sync()] == ["s"]
    schedules.delete_sync("s")
    assert schedules.find_sync("s") is None
    app._portal.close()


# In code


def test_cron_makes_a_job_of_a_function_and_leaves_a_job_as_it_is():
    app = Tenure("postgresql://nowhere")

    @app.cron("0 9 * * *", timezone="Europe/Berlin")
    async def plain() -> None: ...

    @app.cron("@hourly", name="hourly", input={"n": 1}, queue="other", priority="low")
    @app.cron(every="10s", input={"n": 2}, overlap="allow", catch_up="all", catch_up_limit=5, jitter="1s")
    @app.job(queue="mail", max_attempts=7, capability="gpu")
    async def work(n: int) -> int:
        return n

    assert isinstance(plain, Job)
    assert isinstance(work, Job)
    assert asyncio.run(work(3)) == 3
    first, every, hourly = app.kinds.schedules.values()
    assert (first.name, first.kind, first.cron, first.timezone, first.input) == (
        "plain",
        "plain",
        "0 9 * * *",
        "Europe/Berlin",
        {},
    )
    assert (every.name, every.queue, every.max_attempts, every.capability) == ("work", "mail", 7, "gpu")
    assert (every.overlap, every.catch_up, every.catch_up_limit, every.jitter) == ("allow", "all", 5, timedelta(seconds=1))
    assert (hourly.name, hourly.kind, hourly.input, hourly.queue, hourly.priority) == ("hourly", "work", {"n": 1}, "other", 25)


def test_a_duty_runs_once_is_never_repeated_and_never_caught_up():
    app = Tenure("postgresql://nowhere")

    @app.duty(every="1m", queue="chores")
    def sweep(ctx: Context) -> None: ...

    @app.duty("0 3 * * *", timezone="Europe/Berlin", name="night watch")
    async def watch() -> None: ...

    swept, watched = app.kinds.schedules.values()
    assert (swept.overlap, swept.catch_up, swept.max_attempts, swept.queue) == ("skip", "none", 1, "chores")
    assert (watched.name, watched.kind, watched.cron) == ("night watch", "night watch", "0 3 * * *")
    assert app.kinds["sweep"].retry.max_attempts == 1


def test_what_is_wrong_with_a_declaration_is_reported_where_it_stands():
    app = Tenure("postgresql://nowhere")

    async def work(n: int) -> None: ...

    with pytest.raises(ConfigError, match="schedule 'work': cron 'at nine'"):
        app.cron("at nine", input={"n": 1})(work)
    with pytest.raises(InvalidInput, match=r"give the schedule an input="):
        app.cron("@daily")(work)
    with pytest.raises(InvalidInput, match="n"):
        app.cron("@daily", input={"n": "many"})(work)
    with pytest.raises(ConfigError, match="either a cron"):
        app.cron(input={"n": 1})(work)
    app.cron("@daily", input={"n": 1})(work)
    with pytest.raises(ConfigError, match="declared twice"):
        app.cron("@hourly", input={"n": 1})(work)


async def test_a_running_app_carries_out_what_it_declares(app, database):
    seen: list[tuple[str | None, datetime | None, bool]] = []

    @app.cron(every="1s", overlap="allow")
    async def beat(ctx: Context) -> None:
        seen.append((ctx.schedule, ctx.scheduled_for, ctx.is_late))

    @app.job
    async def other(ctx: Context) -> None:
        seen.append((ctx.schedule, ctx.scheduled_for, ctx.is_late))

    async with app.running():
        await until(lambda: len(seen) >= 3)
        await app.schedules.pause("beat")
        handle = await other.enqueue()
        await handle.result("30s")
    assert seen.pop() == (None, None, False)
    times = [planned for _, planned, _ in seen]
    assert {name for name, _, _ in seen} == {"beat"}
    assert len(set(times)) == len(times)
    assert all(moment is not None and moment.microsecond == 0 for moment in times)
    [beating] = await app.schedules.list()
    assert beating.owner == __name__
    [tick, *_] = [tick for tick in await app.schedules.ticks("beat") if tick.job_id]
    assert tick.job_state == "completed", "as its job ended, which is in the history"
    told = (await app.client().report(tick.job_id)).to_text()
    assert "schedule    beat, for " in told
    await app.close()


async def test_an_app_that_declares_nothing_retires_what_it_declared(dsn, database):
    before = Tenure(dsn, name="shop")

    @before.cron("@daily")
    async def old() -> None: ...

    async with before.running():
        pass
    after, stranger = Tenure(dsn, name="shop"), Tenure(dsn, name="stranger")
    async with stranger.running():
        assert [one.name for one in await after.schedules.list()] == ["old"]
    async with after.running():
        assert await after.schedules.list() == []
    await after.close()


def test_upcoming_is_computed_from_postgresqls_clock(app, report):
    made = app.schedules.create_sync("s", report, every="1m", input={"to": "ann"})
    assert abs(made.asked_at - datetime.now(UTC)) < timedelta(minutes=5)
    assert made.asked_at < made.upcoming(1)[0] <= made.asked_at + timedelta(minutes=1)
    app._portal.close()
