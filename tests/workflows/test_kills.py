"""kill -9 at every boundary of a workflow: it continues, each step is recorded once, and replays see the same values."""

from __future__ import annotations

import json
import shutil
from typing import Any

import pytest

from tests.manager.worker_helpers import serving
from tests.processes import worker_process
from tests.waiting import until
from tests.workflows import killed_app

STEPS = [
    "before steps/record_steps",
    "after steps/record_steps",
    "in first",
    "before steps/record_steps 2",
    "after steps/record_steps 2",
    "after first",
]
WAITS = [
    "before workflows/suspend_jobs 1",
    "after workflows/suspend_jobs 1",
    "before steps/load_steps",
    "after nap",
    "before events/find_event",
    "after events/find_event",
    "before workflows/suspend_jobs 2",
    "after workflows/suspend_jobs 2",
    "after wait",
]
LAST = [
    "before steps/record_rollback",
    "after steps/record_rollback",
    "in book",
    "after book",
    "before workflows/start_children",
    "after workflows/start_children",
    "before workflows/suspend_jobs 3",
    "after workflows/suspend_jobs 3",
    "before jobs/finish_jobs",
    "before jobs/finish_jobs 2",
]
UNDOS = [
    "in undo",
    "before steps/record_steps 4",
    "after steps/record_steps 4",
    "before steps/record_steps 5",
    "after steps/record_steps 5",
]


@pytest.fixture
def start(project, dsn, sql, tmp_path):
    sql("create table if not exists public.journeys (name text)")
    sql("truncate public.journeys")
    shutil.copy(killed_app.__file__, project / "jobs.py")
    return lambda: worker_process(project, dsn, env={"TENURE_KILLS": str(tmp_path)})


class Journeys:
    def __init__(self, sql: Any, folder: Any) -> None:
        self.sql, self._folder = sql, folder

    def begin(self, name: str, ending: str, *, killed_at: str) -> str:
        (self._folder / f"kill {killed_at.replace('/', ' ')}").touch()
        job = json.dumps([{"kind": "journey", "max_attempts": 1, "input": {"name": name, "ending": ending}}])
        [(job_id,)] = self.sql("select id::text from tenure.enqueue(%s)", job)
        self.sql("select pg_notify('tenure', 'jobs default')")
        return job_id

    def emit(self, name: str) -> None:
        self.sql("select tenure.emit(%s)", json.dumps([{"name": "go", "key": name, "payload": f"go {name}"}]))
        self.sql("select pg_notify('tenure', 'events')")

    async def ended(self, job_id: str, killed_at: str) -> tuple[str, Any]:
        """Once it was killed and is over: its state and output."""
        await until(lambda: not (self._folder / f"kill {killed_at.replace('/', ' ')}").exists(), within=30)
        query = "select state, output from tenure.history where id = %s"
        [ended] = await until(lambda: self.sql(query, job_id), within=60)
        return ended

    def told(self, name: str, what: str, field: str = "token") -> list[Any]:
        lines = [json.loads(line) for line in (self._folder / "ledger").read_text().splitlines()]
        return [line[field] for line in lines if (line["name"], line["what"]) == (name, what)]

    def steps(self, job_id: str) -> dict[str, Any]:
        return dict(self.sql("select name, output from tenure.steps where job_id = %s", job_id))


async def judge(journeys: Journeys, point: str, ending: str) -> None:
    name = f"{point} {ending}"
    job_id = journeys.begin(name, ending, killed_at=point)
    await until(lambda: journeys.sql("select 1 from tenure.waits where job_id = %s", job_id), within=60)
    journeys.emit(name)
    state, output = await journeys.ended(job_id, point)
    steps = journeys.steps(job_id)
    seen = journeys.told(name, "seen")
    assert len({json.dumps(values) for values in seen}) == 1, "a run saw other values than an earlier one"
    assert seen[0] == [steps["now"], steps["first"], f"go {name}", f"booked {name}", f"ticket of {name}"]
    assert steps["first"] in journeys.told(name, "first")
    assert len(journeys.told(name, "first")) <= 2
    assert set(journeys.told(name, "first", "time")) == {steps["now"]}, "a step got another time when it ran again"
    assert journeys.sql("select count(*) from tenure.all_jobs where kind = 'ticket' and input ->> 'name' = %s", name) == [(1,)]
    assert journeys.sql("select count(*) from public.journeys where name = %s", name) == [(1,)]
    if ending == "fail":
        assert state == "failed"
        assert 1 <= len(journeys.told(name, "undo")) <= 2
        assert steps["(undo) undo effect"] in journeys.told(name, "undo")
    else:
        assert (state, output) == ("completed", seen[0])
        assert journeys.told(name, "undo") == []


@pytest.mark.parametrize("point", ["in first", "after workflows/suspend_jobs 2", "in book", "after workflows/start_children"])
async def test_a_workflow_that_is_killed_continues(start, sql, tmp_path, point):
    with start() as worker:
        await serving(worker)
        await judge(Journeys(sql, tmp_path), point, "")


async def test_a_rollback_that_is_killed_continues(start, sql, tmp_path):
    with start() as worker:
        await serving(worker)
        await judge(Journeys(sql, tmp_path), "in undo", "fail")


@pytest.mark.parametrize("point", ["before chains/continue_jobs", "after chains/continue_jobs"])
async def test_a_workflow_that_is_killed_as_it_begins_again_receives_each_signal_once(start, sql, tmp_path, point):
    (tmp_path / f"kill {point.replace('/', ' ')}").touch()
    [(job_id,)] = sql("select id::text from tenure.enqueue(%s)", json.dumps([{"kind": "relay", "input": {"got": []}}]))
    for leg in ("a", "b"):
        sql("select tenure.emit(%s)", json.dumps([{"name": "leg", "key": job_id, "payload": leg}]))
    with start() as worker:
        await serving(worker)
        ended = "select output, count(*) over () from tenure.history where kind = 'relay' and next_id is null"
        assert await until(lambda: sql(ended), within=60) == [(["a", "b"], 1)]
    assert not list(tmp_path.glob("kill *"))
    assert sql("select count(*) from tenure.history where kind = 'relay'") == [(2,)]


@pytest.mark.slow
@pytest.mark.parametrize("point", [*STEPS, *WAITS, *LAST])
async def test_a_workflow_continues_wherever_it_is_killed(start, sql, tmp_path, point):
    with start() as worker:
        await serving(worker)
        await judge(Journeys(sql, tmp_path), point, "")


@pytest.mark.slow
@pytest.mark.parametrize("point", [*UNDOS, "in book", "after book"])
async def test_a_rollback_continues_wherever_it_is_killed(start, sql, tmp_path, point):
    with start() as worker:
        await serving(worker)
        await judge(Journeys(sql, tmp_path), point, "fail")
