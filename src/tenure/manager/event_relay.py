"""What the supervisor tells of itself: it runs no user code, so a child calls the subscribers for it."""

from __future__ import annotations

from collections import deque
from dataclasses import asdict, fields
from datetime import datetime
from typing import Any
from uuid import UUID

from tenure.manager.process import ChildProcess
from tenure.model.events import (
    Event,
    Events,
    JobDue,
    JobReaped,
    LeaderDeposed,
    LeaderElected,
    ScheduleTicked,
    WorkerDied,
)

_TOLD: dict[str, type[Event]] = {
    type_.__name__: type_ for type_ in (LeaderElected, LeaderDeposed, WorkerDied, JobDue, JobReaped, ScheduleTicked)
}
MOST_WAITING = 10_000
"""Events that wait for a child. With more of them the oldest are dropped."""

_READ = {"UUID": UUID, "datetime": datetime.fromisoformat}


class Telling(Events):
    """Hands each event to one of the children."""

    def __init__(self, children: set[ChildProcess]) -> None:
        super().__init__()
        self._children = children
        self._untold: deque[Event] = deque(maxlen=MOST_WAITING)
        self._wanted: frozenset[str] = frozenset()

    def wants(self, type_: type[Event]) -> bool:
        """Whether the app subscribes to it, as far as a child has reported. While no child lives, the last ones count: the event
        waits for the next child."""
        self._learn()
        return type_.__name__ in self._wanted

    def emit(self, event: Event) -> None:
        self._untold.append(event)
        self.catch_up()

    def _learn(self) -> None:
        lists = [child.hello.wants for child in self._children if child.hello is not None]
        if lists:
            self._wanted = frozenset(name for wants in lists for name in wants)

    def catch_up(self) -> None:
        """Sends what happened while no child was there."""
        self._learn()
        serving = [child for child in self._children if child.serving]
        while serving and self._untold:
            event = self._untold.popleft()
            told = {name: str(value) if isinstance(value, UUID | datetime) else value for name, value in asdict(event).items()}
            min(serving, key=lambda child: child.started).tell(type(event).__name__, told)


def told_event(name: str, told: dict[str, Any]) -> Event:
    """The event that the supervisor told."""
    type_ = _TOLD[name]
    readers = {field.name: _READ.get(str(field.type).removesuffix(" | None")) for field in fields(type_)}
    return type_(**{key: _read(readers[key], value) for key, value in told.items()})


def _read(reader: Any, value: Any) -> Any:
    return value if reader is None or value is None else reader(value)
