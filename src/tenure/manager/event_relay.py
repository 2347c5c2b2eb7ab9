"""Events of the supervisor. It runs no user code, so it sends them to a child, which calls the subscribers."""

from __future__ import annotations

from collections import deque
from dataclasses import asdict, fields
from datetime import datetime
from typing import Any
from uuid import UUID

from tenure.manager.process import ChildProcess
from tenure.model.event_bus import Events
from tenure.model.events import (
    Event,
    JobCanceled,
    JobCompleted,
    JobDue,
    JobFailed,
    JobReaped,
    JobUnblocked,
    LeaderDeposed,
    LeaderElected,
    ScheduleTicked,
    WorkerDied,
    WorkflowWoken,
)
from tenure.model.states import State

_OF_DUTIES = (JobCanceled, JobCompleted, JobDue, JobFailed, JobReaped, JobUnblocked, ScheduleTicked, WorkflowWoken)
_RELAYED: dict[str, type[Event]] = {type_.__name__: type_ for type_ in (LeaderElected, LeaderDeposed, WorkerDied, *_OF_DUTIES)}
MOST_WAITING = 10_000
"""Events that wait for a child. Beyond that the oldest are dropped."""

_READ = {"UUID": UUID, "datetime": datetime.fromisoformat, "State": State}


class EventRelay(Events):
    """Sends each event to one of the children."""

    def __init__(self, children: set[ChildProcess]) -> None:
        super().__init__()
        self._children = children
        self._waiting: deque[Event] = deque(maxlen=MOST_WAITING)
        self._wanted: frozenset[str] = frozenset()

    def wants(self, type_: type[Event]) -> bool:
        """Whether the app subscribes to it, according to the children. While no child lives, the last answer applies: the event
        waits for the next child."""
        self._update_wanted()
        return type_.__name__ in self._wanted

    def emit(self, event: Event) -> None:
        self._waiting.append(event)
        self.send_waiting()

    def _update_wanted(self) -> None:
        lists = [child.hello.wants for child in self._children if child.hello is not None]
        if lists:
            self._wanted = frozenset(name for wants in lists for name in wants)

    def send_waiting(self) -> None:
        """Sends the events that happened while no child was serving."""
        self._update_wanted()
        serving = [child for child in self._children if child.serving]
        while serving and self._waiting:
            event = self._waiting.popleft()
            values = {name: str(value) if isinstance(value, UUID | datetime) else value for name, value in asdict(event).items()}
            min(serving, key=lambda child: child.started).send_event(type(event).__name__, values)


def relayed_event(name: str, values: dict[str, Any]) -> Event:
    """The event that the supervisor sent."""
    type_ = _RELAYED[name]
    readers = {field.name: _READ.get(str(field.type).removesuffix(" | None")) for field in fields(type_)}
    return type_(**{key: _read(readers[key], value) for key, value in values.items()})


def _read(reader: Any, value: Any) -> Any:
    return value if reader is None or value is None else reader(value)
