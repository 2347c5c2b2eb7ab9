"""Who subscribes to which events, and how they are called."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tenure.model.events import Event

log = logging.getLogger("tenure")


class Events:
    """The subscribers by type of event.

    They are called in the process in which the event happens. The failure of a subscriber is logged, and affects nothing else.
    """

    def __init__(self) -> None:
        self._subscribers: list[tuple[tuple[type[Event], ...], Callable[[Any], object]]] = []
        self._tasks: set[asyncio.Task[Any]] = set()

    def subscribe(self, types: tuple[type[Event], ...], subscriber: Callable[[Any], object]) -> None:
        from tenure.model.events import Event, check_event_types  # noqa: PLC0415 - see there

        check_event_types(types)
        self._subscribers.append((types or (Event,), subscriber))

    @property
    def has_subscribers(self) -> bool:
        """To any event."""
        return bool(self._subscribers)

    def wants(self, type_: type[Event]) -> bool:
        """Whether there is a subscriber. If not, the event need not be created."""
        return bool(self._subscribers) and any(issubclass(type_, types) for types, _ in self._subscribers)

    def wanted(self) -> list[str]:
        """The names of all events that have a subscriber."""
        from tenure.model.events import Event  # noqa: PLC0415 - see there

        return [type_.__name__ for type_ in Event.__subclasses__() if self.wants(type_)]

    def emit(self, event: Event) -> None:
        for types, subscriber in self._subscribers:
            if isinstance(event, types):
                self._call(subscriber, event)

    def _call(self, subscriber: Callable[[Any], object], event: Event) -> None:
        try:
            given = subscriber(event)
            if inspect.isawaitable(given):
                self._follow(_awaited(given, event))
        except Exception:
            log.exception("event subscriber failed", extra={"event": type(event).__name__})

    def _follow(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            task = asyncio.get_running_loop().create_task(work)
        except RuntimeError:
            asyncio.run(work)  # code without an event loop waits for it
            return
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _awaited(given: Any, event: Event) -> None:
    try:
        await given
    except Exception:
        log.exception("event subscriber failed", extra={"event": type(event).__name__})
