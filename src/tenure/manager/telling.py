"""What the supervisor tells of itself: it runs no user code, so a child calls the subscribers for it."""

from __future__ import annotations

from collections import deque
from dataclasses import asdict
from typing import Any
from uuid import UUID

from tenure.manager.process import ChildProcess
from tenure.model.events import Event, Events, LeaderDeposed, LeaderElected, WorkerDied

_TOLD: dict[str, type[Event]] = {type_.__name__: type_ for type_ in (LeaderElected, LeaderDeposed, WorkerDied)}


class Telling(Events):
    """Hands each event to one of the children."""

    def __init__(self, children: set[ChildProcess]) -> None:
        super().__init__()
        self._children = children
        self._untold: deque[Event] = deque(maxlen=100)

    def emit(self, event: Event) -> None:
        self._untold.append(event)
        self.catch_up()

    def catch_up(self) -> None:
        """Tells what happened while there was nobody to tell."""
        serving = [child for child in self._children if child.serving]
        while serving and self._untold:
            event = self._untold.popleft()
            fields = {name: str(value) if isinstance(value, UUID) else value for name, value in asdict(event).items()}
            min(serving, key=lambda child: child.started).tell(type(event).__name__, fields)


def told_event(name: str, fields: dict[str, Any]) -> Event:
    """The event that the supervisor told."""
    if "worker_id" in fields:
        fields = {**fields, "worker_id": UUID(fields["worker_id"])}
    return _TOLD[name](**fields)
