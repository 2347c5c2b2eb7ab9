"""The supervisor sends its events to a child, which calls the subscribers."""

from __future__ import annotations

import os
import re
import signal
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest

from tenure import leader
from tenure.manager.event_relay import _RELAYED, EventRelay, relayed_event
from tenure.model.events import (
    Event,
    JobCanceled,
    JobCompleted,
    JobDue,
    JobFailed,
    JobReaped,
    JobUnblocked,
    LeaderElected,
    ScheduleTicked,
    WorkerDied,
    WorkflowWoken,
)
from tenure.model.states import State
from tests.manager.worker_helpers import serving
from tests.waiting import until

REPORTS_REAPED = """
from tenure.events import JobReaped


@app.on(JobReaped)
def report(event: JobReaped) -> None:
    with RUN_LOG.open("a") as run_log:
        run_log.write(json.dumps({"event": "reaped", "job": str(event.job_id), "why": event.why}) + "\\n")
"""

EVENTS: list[Event] = [
    LeaderElected(duty="stager", term=3),
    WorkerDied(worker_id=uuid4(), cause="signal SIGKILL"),
    JobDue(job_id=uuid4(), kind="work", queue="default"),
    JobReaped(
        job_id=uuid4(), kind="work", queue="default", worker_id=uuid4(), why="crashed", quarantined=True, worker="a", host="b"
    ),
    JobCanceled(job_id=uuid4(), kind="work", reason="expired", by=None, ran=False),
    JobCompleted(job_id=uuid4(), kind="tenure.group", by=None),
    JobFailed(job_id=uuid4(), kind="tenure.group", queue="default", error="no"),
    JobUnblocked(job_id=uuid4(), kind="work", queue="default", state=State.SCHEDULED),
    WorkflowWoken(job_id=uuid4(), kind="work", queue="default"),
    ScheduleTicked(schedule="s", planned_at=datetime.now(UTC), outcome="missed", times=3, until=datetime.now(UTC), job_id=None),
    ScheduleTicked(schedule="s", planned_at=datetime.now(UTC), outcome="enqueued", times=1, until=None, job_id=uuid4()),
]


def test_every_event_that_duties_emit_is_relayed():
    """A child does not know others, and cannot call their subscribers."""
    known = {type_.__name__ for type_ in Event.__subclasses__()}
    folder = Path(leader.__file__).parent
    emitted = {name for path in folder.rglob("*.py") for name in re.findall(r"\b(\w+)\(", path.read_text("utf-8"))} & known
    assert len(emitted) >= 8
    assert emitted <= set(_RELAYED)


class Child:
    def __init__(self, *wants: str) -> None:
        self.serving, self.started, self.hello = True, 0.0, SimpleNamespace(wants=wants)
        self.sent: list[tuple[str, dict[str, Any]]] = []

    def send_event(self, name: str, fields: dict[str, Any]) -> None:
        self.sent.append((name, fields))


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_an_event_arrives_as_it_was(event):
    child = Child()
    EventRelay({child}).emit(event)  # type: ignore[arg-type]
    [(name, fields)] = child.sent
    assert all(value is None or isinstance(value, str | int | bool) for value in fields.values())
    assert asdict(relayed_event(name, fields)) == asdict(event)


def test_it_wants_what_the_app_of_a_child_subscribes_to():
    relay = EventRelay({Child("JobReaped"), Child()})  # type: ignore[arg-type]
    assert relay.wants(JobReaped)
    assert not relay.wants(JobDue)


def test_what_happens_while_no_child_lives_is_sent_to_the_next_one():
    first, second = Child("JobReaped"), Child("JobReaped")
    children = {first}
    relay = EventRelay(children)  # type: ignore[arg-type]
    relay.send_waiting()  # as when the first child is admitted
    children.clear()
    assert relay.wants(JobReaped)
    assert not relay.wants(JobDue)
    relay.emit(EVENTS[3])
    children.add(second)
    relay.send_waiting()
    assert (first.sent, [name for name, _ in second.sent]) == ([], ["JobReaped"])


async def test_the_only_process_of_a_worker_is_notified_of_the_jobs_that_its_predecessor_lost(start, project, run_log, queue):
    with (project / "jobs.py").open("a") as file:
        file.write(REPORTS_REAPED)
    worker = start("--processes", "1")
    [child] = await serving(worker)
    [job] = queue.add("until_released")
    await until(lambda: run_log.runs(job), is_=[1])
    os.kill(child, signal.SIGKILL)
    [entry] = await until(lambda: run_log.entries("reaped"))
    assert (entry["job"], entry["why"]) == (job, "crashed")
    run_log.release()
    await queue.completed(job)
