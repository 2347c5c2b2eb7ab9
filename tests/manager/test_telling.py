"""Events of the supervisor are told to a child, which calls the subscribers."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest

from tenure.manager.telling import Telling, told_event
from tenure.model.events import Event, JobDue, JobReaped, LeaderElected, ScheduleTicked, WorkerDied

EVENTS: list[Event] = [
    LeaderElected(duty="stager", term=3),
    WorkerDied(worker_id=uuid4(), cause="signal SIGKILL"),
    JobDue(job_id=uuid4(), kind="work", queue="default"),
    JobReaped(job_id=uuid4(), kind="work", queue="default", worker_id=uuid4(), why="crashed", quarantined=True),
    ScheduleTicked(schedule="s", planned_at=datetime.now(UTC), outcome="missed", times=3, until=datetime.now(UTC), job_id=None),
    ScheduleTicked(schedule="s", planned_at=datetime.now(UTC), outcome="enqueued", times=1, until=None, job_id=uuid4()),
]


class Child:
    def __init__(self, *wants: str) -> None:
        self.serving, self.started, self.hello = True, 0.0, SimpleNamespace(wants=wants)
        self.told: list[tuple[str, dict[str, Any]]] = []

    def tell(self, name: str, fields: dict[str, Any]) -> None:
        self.told.append((name, fields))


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_an_event_arrives_as_it_was(event):
    child = Child()
    Telling({child}).emit(event)  # type: ignore[arg-type]
    [(name, fields)] = child.told
    assert all(value is None or isinstance(value, str | int | bool) for value in fields.values())
    assert asdict(told_event(name, fields)) == asdict(event)


def test_it_wants_what_the_app_of_a_child_subscribes_to():
    telling = Telling({Child("JobReaped"), Child()})  # type: ignore[arg-type]
    assert telling.wants(JobReaped)
    assert not telling.wants(JobDue)
