"""What workflows wait for without a slot: times and events."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from typing import Any, NamedTuple

from tenure.flow.step_runner import StepRunner
from tenure.model.codec import OutputCodec
from tenure.model.durations import Duration, to_seconds
from tenure.model.errors import ConfigError, WaitTimeout
from tenure.model.payloads import Json
from tenure.model.suspensions import EventWait, OpenStep
from tenure.store import chains, events
from tenure.store.events import EventRow
from tenure.store.steps import StepRow

SHORT = 1.0
"""Seconds that a workflow sleeps in its slot. For longer, it is suspended."""


class End(NamedTuple):
    """When a wait is over: after some seconds, or at a time."""

    seconds: float | None = None
    until: str | None = None
    """In ISO 8601."""

    @classmethod
    def of(cls, duration: Duration | None, until: datetime | None, *, what: str) -> End:
        if (duration is None) == (until is None):
            raise ConfigError(f'{what} takes either a duration, "1h", or a time, until=...')
        if until is None:
            return cls(seconds=to_seconds(duration or 0, what=what))
        if not isinstance(until, datetime) or until.utcoffset() is None:
            raise ConfigError(f"{what}: until is {until!r}, but must be a datetime with a time zone: datetime(..., tzinfo=UTC)")
        return cls(until=until.astimezone(UTC).isoformat())


class Received:
    """How far the events of a name were received. Tasks that wait for the same signal share one, so that each gets another."""

    __slots__ = ("position",)

    def __init__(self, position: int = 0) -> None:
        self.position = position

    def take(self, position: int) -> bool:
        """False: another task has taken this event, or one behind it."""
        if position <= self.position:
            return False
        self.position = position
        return True


class Waiter:
    def __init__(self, steps: StepRunner) -> None:
        self._steps = steps
        self._journal = steps.journal
        self._chain: str | None = None

    async def sleep(self, key: str, end: End) -> None:
        row = await self._steps.recorded(key, "sleep")
        if row is not None:
            if not is_over(row):
                await self._steps.activity.wait(OpenStep(number=row.number, name=key, what="sleep", until=row.due_at))
            if row.state == "open":
                self._journal.add(self._done(key, "sleep", None))
                self._steps.wait_ended(key, "sleep")
            return
        with self._steps.activity.working():
            await self._steps.begin(key)
            self._steps.wait_began(key, "sleep", seconds=end.seconds, until=end.until)
            if end.seconds is not None and end.seconds <= SHORT:
                await asyncio.sleep(end.seconds)
                await self._journal.record(key, "sleep", ran=end.seconds)
                self._steps.wait_ended(key, "sleep")
                return
        await self._steps.activity.wait(
            OpenStep(number=self._journal.next_number(), name=key, what="sleep", seconds=end.seconds, until=end.until)
        )

    async def wait_for(self, key: str, event: AwaitedEvent) -> Any:
        """The payload of the first event. Raises `WaitTimeout`."""
        row = await self._begin(key, "wait", event)
        if row is not None and row.state == "done":
            return event.decode(row.output)
        if row is None or row.state == "open":
            with self._steps.activity.working():
                found = await self._steps.read(events.find(event.name, event.key))
            if found:
                return self._received(key, "wait", event, found[0].payload)
            await self._wait_or_time_out(key, "wait", event, row)
        raise WaitTimeout(key)

    async def next_event(self, key: str, event: AwaitedEvent, received: Received) -> Any:
        """The payload of the next event of a stream that was not received yet. Raises `WaitTimeout`."""
        row = await self._begin(key, "event", event)
        if row is not None and row.state == "done":
            recorded = json.loads(row.output or "null")
            received.take(int(recorded["position"]))
            return event.decode(json.dumps(recorded["payload"]))
        if row is None or row.state == "open":
            with self._steps.activity.working():
                await self._find_key(event)
                found = await self._take_next(event, received)
            if found is not None:
                output = {"payload": json.loads(found.payload or "null"), "position": found.position}
                self._journal.add(self._done(key, "event", output))
                self._steps.wait_ended(key, "event")
                return event.decode(found.payload)
            await self._wait_or_time_out(key, "event", event, row, received.position)
        raise WaitTimeout(key)

    async def _find_key(self, event: AwaitedEvent) -> None:
        """Signals are sent to the chain of the workflow. A link behind the first one has to look it up."""
        if event.link is None:
            return
        if self._chain is None:
            found = await self._steps.read(chains.find_chain(event.link))
            self._chain = found[0] if found else event.link  # none: the run has lost its job, and stores nothing any more
        event.key = self._chain

    async def _take_next(self, event: AwaitedEvent, received: Received) -> EventRow | None:
        """Reads again if another task has taken the event while it was read."""
        while found := await self._steps.read(events.find_next(event.name, event.key, received.position)):
            if received.take(found[0].position):
                return found[0]
        return None

    async def _begin(self, key: str, what: str, event: AwaitedEvent) -> StepRow | None:
        row = await self._steps.recorded(key, what)
        if row is None or row.state == "open":
            with self._steps.activity.working():
                await self._steps.begin(key)
        if row is None:
            self._steps.wait_began(key, what, event=event.name, seconds=event.timeout)
        return row

    def _received(self, key: str, what: str, event: AwaitedEvent, payload: Json | None) -> Any:
        """Is written with what follows. A run that comes here again before that finds the same event."""
        self._journal.add(self._done(key, what, json.loads(payload or "null")))
        self._steps.wait_ended(key, what)
        return event.decode(payload)

    def _done(self, key: str, what: str, output: Any) -> OpenStep:
        return OpenStep(number=self._journal.number_of(key), name=key, what=what, state="done", output=output)

    async def _wait_or_time_out(
        self, key: str, what: str, event: AwaitedEvent, row: StepRow | None, after: int | None = None
    ) -> None:
        """Returns if the time is over. That is stored before a step follows, so an event that comes later changes nothing."""
        number = self._journal.number_of(key)
        if row is not None and row.due_in is not None and row.due_in <= 0:
            self._journal.add(OpenStep(number=number, name=key, what=what, state="failed", error="no event in time"))
            self._steps.wait_ended(key, what, failed=True, error="no event in time")
            return
        begun = row is not None
        step = OpenStep(
            number=number, name=key, what=what,
            output={"event": event.name, "key": event.key},
            seconds=None if begun else event.timeout,
            until=row.due_at if row is not None else None,
        )  # fmt: skip
        await self._steps.activity.wait(step, EventWait(step=key, event=event.name, key=event.key, after=after))


class AwaitedEvent:
    """An event that a workflow waits for."""

    def __init__(self, name: str, key: str, timeout: float | None, type_: Any, *, link: str | None = None) -> None:
        self.name = name
        self.key = key
        self.link = link
        """A link of the chain whose id is the key; None: the key is known."""
        self.timeout = timeout
        """Seconds."""
        self._codec = OutputCodec(Any if type_ is None else type_, kind=f"event {name}")

    def decode(self, payload: Json | None) -> Any:
        return self._codec.decode("null" if payload is None else payload)


def is_over(row: StepRow) -> bool:
    """Recorded as done, or its time has passed: by PostgreSQL's clock, which does not go back."""
    return row.state == "done" or (row.due_in is not None and row.due_in <= 0)
