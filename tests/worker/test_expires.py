"""`expires`: a job that was not started by then is canceled."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tenure import ConfigError, Context, JobCanceled, Limit, Retry, Tenure
from tenure.leader.duties.duty import RoundResult
from tenure.leader.duties.stager import Stager
from tenure.testing import bound, drain, enqueued, temporary_database, travel

app = Tenure(log_failed_attempt="debug")


@app.job(expires="1h", retry=Retry(max_attempts=2, initial="2h", max_backoff="2h", jitter=False))
async def remind(ctx: Context, fails: int = 0) -> int:
    if ctx.attempt <= fails:
        raise ConnectionError("no")
    return ctx.attempt


@app.job(expires="1h", concurrency=Limit(1))
async def limited() -> None: ...


@app.job
async def patient() -> str:
    return "done"


@pytest.fixture
def tested(server_dsn):
    with temporary_database(server_dsn) as dsn, bound(app, dsn):
        yield app


@pytest.mark.parametrize("job", [remind, limited], ids=["unlimited", "limited"])
async def test_a_job_that_was_not_started_in_time_is_canceled(tested, job):
    handle = await job.enqueue()
    travel(app, minutes=61)
    assert await drain(app) == []
    status = await handle.status()
    assert status.state == "canceled"
    assert "expired: it was not started by" in status.error
    with pytest.raises(JobCanceled, match="expired"):
        await handle.result()


@pytest.mark.parametrize("job", [remind, limited], ids=["unlimited", "limited"])
async def test_in_time_it_runs(tested, job):
    await job.enqueue()
    travel(app, minutes=59)
    assert [run.what for run in await drain(app)] == ["completed"]


async def test_a_worker_does_not_claim_it_even_if_no_leader_has_canceled_it(tested):
    await remind.enqueue()
    await limited.enqueue()
    await patient.enqueue()
    travel(app, minutes=61)

    async def idle(*_):
        return RoundResult(holds=True)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stager, "run_once", idle)
        assert [run.kind for run in await drain(app)] == ["patient"]
    assert sorted(job.state for job in await enqueued(app)) == ["completed", "pending", "pending"]


async def test_once_started_it_does_not_expire(tested):
    await remind.enqueue(fails=1)
    assert [run.state for run in await drain(app, retries=False)] == ["retry"]
    travel(app, hours=3)
    [run] = await drain(app, retries=False)
    assert (run.state, run.attempt) == ("completed", 2)


async def test_a_job_for_later(tested):
    handle = await remind.using(delay="2h").enqueue()
    travel(app, minutes=61)
    await drain(app)
    assert (await handle.status()).state == "canceled"


async def test_the_option_of_a_call_and_its_forms(tested):
    until = datetime.now(UTC) + timedelta(minutes=10)
    by_time = await patient.using(expires=until).enqueue()
    by_duration = await patient.using(expires="30m").enqueue()
    overridden = await remind.using(expires="3h").enqueue()
    by_name = await app.enqueue("patient", expires=60)
    never = await patient.enqueue()
    travel(app, minutes=20)
    await drain(app)
    states = [(await handle.status()).state for handle in (by_time, by_duration, overridden, by_name, never)]
    assert states == ["canceled", "completed", "completed", "canceled", "completed"]


async def test_a_job_that_waits_for_it_learns_of_its_end(tested):
    first = await remind.enqueue()
    second = await patient.using(after=[first], on_blocker_failure="run").enqueue()
    travel(app, minutes=61)
    await drain(app)
    assert (await second.status()).state == "completed"


async def test_a_key_that_is_reserved_while_the_job_lives_is_free_again(tested):
    first = await patient.using(expires="1h", key="k", key_for="live").enqueue()
    travel(app, minutes=61)
    await drain(app)
    assert not (await patient.using(key="k", key_for="live").enqueue()).existed
    assert (await first.status()).state == "canceled"


async def test_a_status_an_explanation_and_a_report_show_when_a_job_expires(tested):
    handle = await remind.using(delay="2h").enqueue()
    status = await handle.status()
    assert abs(status.expires_at - status.enqueued_at - timedelta(hours=1)) < timedelta(seconds=5)
    reasons = {reason.code: reason.text for reason in (await handle.explain()).reasons}
    assert reasons["expires"].startswith("it is canceled if it has not started in ")
    assert "\n  expires " in (await handle.report()).to_text()
    travel(app, minutes=61)
    assert "about to be canceled" in [reason.text for reason in (await handle.explain()).reasons][-1]
    await drain(app)
    assert (await handle.status()).expires_at is None


async def test_a_job_that_was_started_does_not_show_it_any_more(tested):
    handle = await remind.enqueue(fails=1)
    await drain(app, retries=False)
    assert (await handle.status()).expires_at is None


async def test_jobs_of_a_schedule_expire(tested):
    await app.schedules.create("by itself", patient, every="30m", expires="10m", overlap="allow")
    made = await app.schedules.create("by its job", remind, every="30m", overlap="allow")
    await app.schedules.create("never", patient, every="30m", overlap="allow")
    assert made.expires == timedelta(hours=1)
    handles = [await app.schedules.run_now(name) for name in ("by itself", "by its job", "never")]
    for name in ("by itself", "by its job", "never"):
        await app.schedules.pause(name)
    expiries = [(await handle.status()).expires_at for handle in handles]
    assert [expiry is None for expiry in expiries] == [False, False, True]
    travel(app, minutes=11)
    await drain(app)
    assert [(await handle.status()).state for handle in handles] == ["canceled", "completed", "completed"]
    changed = await app.schedules.change("never", expires="5m")
    assert (changed.expires, (await app.schedules.change("never", expires=None)).expires) == (timedelta(minutes=5), None)


def test_mistakes_are_reported():
    with pytest.raises(ConfigError, match="expires needs a time zone"):
        patient.using(expires=datetime(2030, 1, 1))  # noqa: DTZ001
    with pytest.raises(ConfigError, match="expires"):
        patient.using(expires="soon")
