"""tenure watch."""

from __future__ import annotations

import asyncio
import json

import pytest

from tenure import Cancel, Context, Tenure
from tests.waiting import until


@pytest.fixture
def release() -> asyncio.Event:
    return asyncio.Event()


@pytest.fixture
def jobs(app: Tenure, release: asyncio.Event):
    @app.job(max_attempts=1)
    async def bake(ctx: Context, ends: str) -> str:
        ctx.progress(40, "in the \x1b[31moven")
        await release.wait()
        if ends == "canceled":
            raise Cancel("not needed")
        if ends == "failed":
            raise ValueError("burnt")
        return ends

    return bake


@pytest.fixture
def watched(line, app, jobs, release, sql):
    """Runs `tenure watch` on a job that continues once it is being watched."""

    async def watched(ends: str, *words: str, meanwhile: str = "select 1"):
        async with app.running():
            handle = await jobs.enqueue(ends)
            await until(handle.progress)
            watching = asyncio.create_task(asyncio.to_thread(line, "watch", handle.id, "--timeout", "20s", *words))
            await until(lambda: sql("select job_id from tenure.watches"))
            sql(meanwhile)
            release.set()
            return await watching

    return watched


@pytest.mark.parametrize(("ends", "code"), [("completed", 0), ("failed", 5), ("canceled", 7)])
async def test_a_line_for_each_step_and_the_exit_code_shows_how_it_ended(watched, ends, code):
    shown = await watched(ends)
    assert shown.exit_code == code
    steps = shown.stdout.splitlines()
    assert "running  attempt 1 of 1  40 %  in the \\x1b[31moven" in steps
    assert steps[-2].split()[0] == ("dead_letter" if ends == "failed" else ends)
    assert ("burnt" in steps[-1]) == (ends == "failed")


async def test_for_programs_each_step_is_a_document(watched):
    shown = await watched("completed", "--json")
    steps = [json.loads(row) for row in shown.stdout.splitlines()]
    assert steps[-1]["job"]["state"] == "completed"
    assert {"percent": 40.0, "message": "in the \x1b[31moven"}.items() <= steps[-1]["progress"].items()


async def test_a_database_that_is_unavailable_for_some_time_is_waited_for(watched):
    broken = (
        "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
    )
    shown = await watched("completed", meanwhile=broken)
    assert shown.exit_code == 0


def test_a_job_that_is_over_is_reported_at_once(line, enqueue_job):
    job_id = enqueue_job()
    line("jobs", "cancel", job_id, "--reason", "enough")
    shown = line("watch", job_id)
    assert shown.exit_code == 7
    assert "enough" in shown.stdout


def test_watching_may_have_an_end(line, enqueue_job):
    shown = line("watch", enqueue_job(), "--timeout", "200ms")
    assert shown.exit_code == 6
    assert "is not done after 0.2 s" in shown.stderr


def test_what_is_not_there_cannot_be_watched(line):
    assert line("watch", "01890000-0000-7000-8000-000000000000").exit_code == 8
