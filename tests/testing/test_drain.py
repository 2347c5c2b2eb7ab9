"""`drain()` runs what is due, and what that enqueues, until nothing is left."""

from __future__ import annotations

import pytest

from tenure import ConfigError, Tenure
from tenure.testing import DrainTimeout, assert_enqueued, drain, drain_sync, enqueued
from tests.testing.shop import DONE, call_api, charge, endless, first_link, hang, import_rows, send_mail, wait_for

pytestmark = pytest.mark.usefixtures("tenure_app")


async def test_it_runs_jobs_and_the_jobs_that_they_enqueue(tenure_app):
    await charge.enqueue(7)
    first, second = await drain(tenure_app)
    assert (first.kind, first.what, first.state, first.attempt, first.output) == ("charge", "completed", "completed", 1, 700)
    assert (second.kind, second.output) == ("send_mail", "sent to customer of 7")


async def test_retries_run_at_once(tenure_app):
    await charge.enqueue(7, fails=2)
    runs = [run for run in await drain(tenure_app) if run.kind == "charge"]
    assert [(run.attempt, run.what, run.state) for run in runs] == [
        (1, "failed", "retry"),
        (2, "failed", "retry"),
        (3, "completed", "completed"),
    ]
    assert "the bank did not answer" in (runs[0].error or "")


async def test_a_job_that_fails_for_good_is_a_dead_letter(tenure_app):
    handle = await charge.enqueue(7, fails=3)
    *_, last = await drain(tenure_app)
    assert (last.attempt, last.state) == (3, "dead_letter")
    assert (await handle.status()).state == "dead_letter"


async def test_retries_can_be_left_alone(tenure_app):
    await charge.enqueue(7, fails=1)
    assert len(await drain(tenure_app, retries=False)) == 1
    assert await drain(tenure_app, retries=False) == []
    assert [job.state for job in await enqueued(charge)] == ["retry"]


async def test_jobs_for_later_are_left_alone(tenure_app):
    await send_mail.using(delay="1h").enqueue("ann")
    await wait_for.enqueue("later")
    [snoozed] = await drain(tenure_app)
    assert (snoozed.kind, snoozed.what, snoozed.state) == ("wait_for", "snoozed", "scheduled")
    assert DONE == []


async def test_jobs_that_a_limit_holds_back_are_left_alone(tenure_app):
    for n in range(5):
        await call_api.enqueue(n)
    assert sorted(run.output for run in await drain(tenure_app)) == [0, 1]
    assert await drain(tenure_app) == []


async def test_plain_handlers_run_in_threads(tenure_app):
    handle = await import_rows.enqueue([1, 2, 3])
    [run] = await drain(tenure_app)
    assert run.output == 6
    progress = await handle.progress()
    assert (progress.percent, progress.message) == (100, "row 3")


async def test_chains_and_groups_run_to_their_end(tenure_app):
    chain = await first_link.enqueue(2)
    group = await tenure_app.gather([send_mail.call(name) for name in ("ann", "bob")])
    last = await import_rows.using(after=[group, chain]).enqueue([1])
    runs = await drain(tenure_app)
    assert [run.what for run in runs if run.kind == "first_link"] == ["continued", "continued", "completed"]
    assert await chain.result() == "done"
    assert await group.results() == ["sent to ann", "sent to bob"]
    assert runs[-1].job_id == last.id


async def test_only_some_queues(tenure_app):
    await send_mail.enqueue("ann")
    await import_rows.enqueue([1])
    assert [run.kind for run in await drain(tenure_app, queues=["mail"])] == ["send_mail"]


async def test_an_app_without_jobs_to_run(tenure_app):
    assert await drain(tenure_app) == []


async def test_it_can_be_repeated_in_one_test(tenure_app):
    for n in range(3):
        await charge.enqueue(n)
        assert len(await drain(tenure_app)) == 2
    assert_enqueued(charge, times=3)


def test_without_an_event_loop(tenure_app):
    handle = charge.enqueue_sync(7)
    assert sorted(run.kind for run in drain_sync(tenure_app)) == ["charge", "send_mail"]  # it may end before its parent
    assert handle.result_sync() == 700


async def test_jobs_without_end_are_reported(tenure_app):
    await endless.enqueue()
    with pytest.raises(DrainTimeout, match=r"endless ran \d+ times"):
        await drain(tenure_app, timeout="5s")


async def test_each_test_begins_without_jobs(tenure_app):
    assert await enqueued(tenure_app) == []
    assert not (await charge.enqueue(7)).existed


async def test_a_job_that_hangs_is_named(tenure_app):
    await hang.enqueue()
    with pytest.raises(DrainTimeout, match="no run has ended; hang is running now"):
        await drain(tenure_app, timeout="2s")


async def test_never_in_a_database_that_is_not_for_tests():
    """It would run real jobs, and take the duties from a real leader."""
    with pytest.raises(ConfigError, match="database 'shop' may contain real jobs"):
        await drain(Tenure("postgresql://localhost/shop"))
