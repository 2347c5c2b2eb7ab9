"""A defined job: still a function, and now also something to hand to the background."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import Any, Generic, ParamSpec, TypeVar
from uuid import UUID

from tenure.client.handle import Door, Handle
from tenure.model.durations import Duration, to_seconds
from tenure.model.errors import ConfigError
from tenure.model.ids import uuid7
from tenure.model.kinds import Kind
from tenure.model.priorities import to_priority

Q = ParamSpec("Q")  # the function's own parameters
P = ParamSpec("P")  # the same without the context: what is enqueued
T = TypeVar("T")  # what a direct call gives: a value or an awaitable
R = TypeVar("R")  # what the job results in

CHUNK = 500  # jobs a statement: small enough for the socket to take at once


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a single call may say differently from the definition."""

    queue: str | None = None
    priority: int | None = None
    capability: str | None = None
    max_attempts: int | None = None
    delay: float | None = None
    run_at: datetime | None = None

    def prefix(self, kind: Kind) -> str:
        """The constant part of the job's JSON; what equals the schema's default stays out."""
        queue = self.queue or kind.queue
        priority = kind.priority if self.priority is None else self.priority
        attempts = self.max_attempts or kind.retry.max_attempts
        fields: dict[str, Any] = {
            "kind": kind.name,
            "queue": None if queue == "default" else queue,
            "priority": None if priority == 50 else priority,
            "capability": self.capability or kind.capability,
            "max_attempts": None if attempts == 3 else attempts,
            "delay": self.delay,
            "run_at": None if self.run_at is None else self.run_at.isoformat(),
        }
        given = {name: value for name, value in fields.items() if value is not None}
        return "," + json.dumps(given, separators=(",", ":"))[1:-1] + ',"input":'


@dataclass(slots=True)
class Call(Generic[R]):
    """A job with its arguments, checked and encoded, not yet handed in. Made by `job.call(...)`."""

    id: UUID
    kind: str
    text: str
    words: frozenset[str]
    """What to tell the listeners once it is in."""


class _Enqueues(Generic[P, R]):
    """The verbs, for a job with given options."""

    def __init__(self, kind: Kind, door: Door, options: Options) -> None:
        self._kind = kind
        self._door = door
        self._options = options
        self._prefix = options.prefix(kind)
        self._words = frozenset(_words(options, kind))

    def call(self, *args: P.args, **kwargs: P.kwargs) -> Call[R]:
        """Checks the arguments and encodes them, for `app.enqueue_many`."""
        text = self._kind.input.encode(args, kwargs).decode()
        job_id = uuid7()
        return Call(job_id, self._kind.name, f'{{"id":"{job_id.int:032x}"{self._prefix}{text}}}', self._words)

    async def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Hands the job in. When this returns, it survives any crash."""
        call = self.call(*args, **kwargs)
        await self._door.session().enqueue([call.text], call.words)
        return Handle(call.id, call.kind, self._door)

    def enqueue_sync(self, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """The same for code without an event loop."""
        call = self.call(*args, **kwargs)

        async def hand_in() -> None:
            await self._door.session().enqueue([call.text], call.words)

        self._door.portal.run(hand_in())
        return Handle(call.id, call.kind, self._door)


def _words(options: Options, kind: Kind) -> Iterator[str]:
    """A time that may have passed already, by PostgreSQL's clock, concerns both the stager and the workers."""
    if options.delay is not None or options.run_at is not None:
        yield "due"
    if options.delay is None:
        yield f"jobs {options.queue or kind.queue}"


class BoundJob(_Enqueues[P, R]):
    """A job with options of its own for this call: `job.using(delay="5m").enqueue(...)`."""


class Job(_Enqueues[P, R], Generic[Q, P, T, R]):
    """What `@app.job` makes of a function."""

    def __init__(self, kind: Kind, door: Door) -> None:
        super().__init__(kind, door, Options())
        functools.update_wrapper(self, kind.fn)

    @property
    def name(self) -> str:
        return self._kind.name

    @property
    def kind(self) -> Kind:
        return self._kind

    def __call__(self, *args: Q.args, **kwargs: Q.kwargs) -> T:
        """Runs the function here and now, as if it had never been a job."""
        result: T = self._kind.fn(*args, **kwargs)
        return result

    def using(
        self,
        *,
        queue: str | None = None,
        priority: int | str | None = None,
        capability: str | None = None,
        max_attempts: int | None = None,
        delay: Duration | None = None,
        run_at: datetime | None = None,
    ) -> BoundJob[P, R]:
        """The same job with other options for this call."""
        if queue == "":
            raise ConfigError("queue needs a name")
        if max_attempts is not None and max_attempts < 1:
            raise ConfigError(f"max_attempts is {max_attempts}, but must be at least 1")
        if delay is not None and run_at is not None:
            raise ConfigError("give either delay or run_at, not both")
        if run_at is not None and run_at.tzinfo is None:
            raise ConfigError("run_at needs a time zone: use datetime.now(timezone.utc) + ... or give delay")
        options = replace(
            self._options,
            queue=queue,
            priority=None if priority is None else to_priority(priority),
            capability=capability,
            max_attempts=max_attempts,
            delay=None if delay is None else to_seconds(delay, what="delay") or None,
            run_at=run_at,
        )
        return BoundJob(self._kind, self._door, options)

    def schema(self) -> dict[str, Any]:
        """JSON Schema of the job's input."""
        return self._kind.input.schema()

    def __repr__(self) -> str:
        return f"<Job {self.name!r}>"


async def enqueue_many(door: Door, calls: Iterable[Call[Any]]) -> list[Handle[Any]]:
    """All of them, or none, in one transaction. A generator is drawn from while earlier jobs are being written."""
    handles: list[Handle[Any]] = []
    told: set[str] = set()

    def chunks() -> Iterator[str]:
        source = iter(calls)
        while chunk := list(islice(source, CHUNK)):
            handles.extend(Handle(call.id, call.kind, door) for call in chunk)
            told.update(*(call.words for call in chunk))
            yield "[" + ",".join([call.text for call in chunk]) + "]"

    await door.session().enqueue_bulk(chunks(), told)
    return handles
