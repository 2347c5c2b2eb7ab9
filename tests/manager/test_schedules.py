"""Schedules under real workers: declared by their code, recorded once even if processes are killed."""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from pathlib import Path
from uuid import UUID

import pytest

from tests.manager.worker_helpers import SHORT_LEASE, serving
from tests.processes import WorkerProcess
from tests.waiting import until

pytestmark = pytest.mark.slow

APP = """
from tenure import Context, Tenure

app = Tenure()

{schedules}
"""
BEATS = """
async def beat(ctx: Context) -> None:
    pass

beat = app.job(beat)
for number in range(8):
    app.cron(every="1s", name=f"beat {number}", overlap="allow", catch_up="all", catch_up_limit=1000)(beat)
"""
NIGHTLY = """
@app.cron("0 3 * * *", timezone="Europe/Berlin", input={"n": 1})
async def nightly(n: int) -> None:
    pass
"""


def write(project: Path, schedules: str) -> None:
    (project / "jobs.py").write_text(APP.format(schedules=schedules))


async def test_ticks_are_recorded_once_each_while_leaders_are_killed(start, project, sql):
    """Three machines; the one that leads is struck by lightning, and again."""
    write(project, BEATS)
    workers = [start(env=SHORT_LEASE) for _ in range(3)]
    for worker in workers:
        await serving(worker)
    struck = 0
    for _ in range(2):
        reached = newest(sql)
        await until(lambda reached=reached: newest(sql) > reached + 2, within=30)
        victim = leading(sql, workers)
        victim.kill()
        workers.remove(victim)
        struck += 1
        reached = newest(sql)
        await until(lambda reached=reached: newest(sql) > reached + 2, within=40)
    assert struck == 2
    for number in range(8):
        rows = sql("select planned_at, times, job_id from tenure.ticks where schedule = %s order by planned_at", f"beat {number}")
        first = rows[0][0]
        assert [row[0] for row in rows] == [first + timedelta(seconds=n) for n in range(len(rows))], "a time is missing"
        assert {row[1] for row in rows} == {1}
    [(recorded, different)] = sql("select count(*), count(distinct job_id) from tenure.ticks where job_id is not null")
    assert recorded == different
    assert sql(
        "select count(*) from tenure.ticks t where (select count(*) from tenure.all_jobs j where j.id = t.job_id) <> 1"
    ) == [(0,)]
    unrecorded = "not exists (select from tenure.ticks t where t.job_id = j.id)"
    assert sql(f"select count(*) from tenure.all_jobs j where kind = 'beat' and {unrecorded}") == [(0,)]


def newest(sql) -> float:
    """Of the schedule that is furthest behind."""
    newest = "select max(planned_at) as planned_at from tenure.ticks group by schedule"
    [(found,)] = sql(f"select coalesce(extract(epoch from min(planned_at)), 0)::float8 from ({newest}) t")
    return found


def leading(sql, workers: list[WorkerProcess]) -> WorkerProcess:
    [(pid,)] = sql("select (metadata ->> 'pid')::integer from tenure.leases where name = 'cron'")
    return next(worker for worker in workers if worker.pid == pid)


async def test_what_the_code_declares_is_there_when_a_worker_starts_and_retired_when_it_is_gone(start, project, sql):
    write(project, NIGHTLY)
    first, second = start(), start()
    await serving(first)
    await serving(second)
    found = sql("select name, owner, kind, cron, timezone, input, retired_at from tenure.schedules")
    assert found == [("nightly", "jobs:app", "nightly", "0 3 * * *", "Europe/Berlin", {"n": 1}, None)]
    await until(lambda: sql("select next_at is not null from tenure.schedules"), is_=[(True,)])
    planned = sql("select next_at, since, version from tenure.schedules")
    third = start()
    await serving(third)
    assert sql("select next_at, since, version from tenure.schedules") == planned, "the same code changes nothing"
    write(project, "")
    fourth = start()
    await serving(fourth)
    assert sql("select retired_at from tenure.schedules") == [(None,)], "processes of the older version still declare it"
    for worker in (first, second, third, fourth):
        worker.terminate()
        assert worker.wait(30) == 0
    fifth = start()
    await serving(fifth)
    assert sql("select retired_at is not null from tenure.schedules") == [(True,)]
    # By the leader of the new code, as soon as the last process of the old code has ended, or by the next start.
    assert "schedule retired, because the code no longer declares it" in fourth.said + fifth.said


async def test_a_child_that_is_replaced_declares_new_code_and_does_not_undo_what_others_declared(start, project, sql):
    write(project, NIGHTLY)
    old = start()
    await serving(old)
    write(project, NIGHTLY.replace("0 3", "30 4"))
    new = start()
    await serving(new)
    assert sql("select cron from tenure.schedules") == [("30 4 * * *",)]
    write(project, NIGHTLY)  # as the old image still has it
    [child] = old.children()
    os.kill(child, 9)
    await until(lambda: old.said.count("ready: "), is_=2)
    assert sql("select cron from tenure.schedules") == [("30 4 * * *",)]
    write(project, NIGHTLY.replace("0 3", "45 5"))  # as `tenure dev` does when the code changes
    [child] = old.children()
    os.kill(child, 9)
    await until(lambda: old.said.count("ready: "), is_=3)
    assert sql("select cron from tenure.schedules") == [("45 5 * * *",)]


async def test_code_that_declares_an_invalid_schedule_is_reported_at_start(start, project, sql):
    write(project, NIGHTLY.replace("Berlin", "Berln"))
    worker = start()
    assert worker.wait(30) == 3
    assert "did you mean 'Europe/Berlin'?" in worker.said


async def test_jobs_of_a_schedule_that_run_in_their_own_process_know_their_planned_time(start, project, sql):
    write(
        project,
        """
@app.cron(every="1s")
@app.job(run_in="process")
def told(ctx: Context) -> list:
    return [ctx.schedule, ctx.scheduled_for.isoformat(), ctx.is_late]
""",
    )
    worker = start()
    await serving(worker)
    [(job_id, output)] = await until(
        lambda: sql("select id, output from tenure.history where state = 'completed' limit 1"), within=20
    )
    assert isinstance(job_id, UUID)
    [(planned,)] = sql("select planned_at from tenure.ticks where job_id = %s", job_id)
    assert [output[0], datetime.fromisoformat(output[1]), output[2]] == ["told", planned, False]
