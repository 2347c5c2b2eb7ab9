"""A defined job: still a function, and now also something to hand to the background."""

from __future__ import annotations

import functools
import json
import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar
from uuid import UUID

from tenure.client.door import Door
from tenure.client.handle import Handle
from tenure.client.origin import origin
from tenure.model.durations import Duration, to_seconds
from tenure.model.errors import ConfigError
from tenure.model.events import JobEnqueued
from tenure.model.ids import uuid7
from tenure.model.keys import checked, key_scope
from tenure.model.kinds import KeyScope, Kind
from tenure.model.payloads import plain_json
from tenure.model.priorities import to_priority

if TYPE_CHECKING:
    from tenure.client.enqueuer import Met

log = logging.getLogger("tenure")

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
    timeout: float | None = None
    delay: float | None = None
    run_at: datetime | None = None
    key: str | None = None
    key_for: KeyScope | None = None
    auth: Any = None
    meta: dict[str, Any] | None = None
    conn: object | None = None

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
            "timeout": self.timeout,
            "delay": self.delay,
            "run_at": None if self.run_at is None else self.run_at.isoformat(),
            "meta": self.meta,
        }
        given = {name: value for name, value in fields.items() if value is not None}
        return "," + plain_json(given, what=f"the options of job {kind.name!r}")[1:-1]


@dataclass(slots=True)
class Call(Generic[R]):
    """A job with its arguments, checked and encoded, not yet handed in. Made by `job.call(...)`."""

    id: UUID
    kind: str
    text: str
    words: frozenset[str]
    """What to tell the listeners once it is in."""

    def handle(self, door: Door, met: Met) -> Handle[R]:
        """For the job that stands for this call: this one, or an earlier one with the same key."""
        if not met or str(self.id) not in met:
            if door.events.wants(JobEnqueued):
                door.events.emit(JobEnqueued(job_id=self.id, kind=self.kind))
            return Handle(self.id, self.kind, door)
        stands, differs = met[str(self.id)]
        if differs:
            log.warning("job %s (%s) stands for this key already, and was given other input", stands, self.kind)
        return Handle(stands, self.kind, door, existed=True, same_input=not differs)


class _Enqueues(Generic[P, R]):
    """The verbs, for a job with given options."""

    def __init__(self, kind: Kind, door: Door, options: Options) -> None:
        self._kind = kind
        self._door = door
        self._options = options
        self._prefix = options.prefix(kind)
        self._keyed = kind.key is not None or options.key is not None
        self._words = frozenset(_words(options, kind))
        self._auth = "" if options.auth is None else ',"auth":' + plain_json(options.auth, what="auth")

    def call(self, *args: P.args, **kwargs: P.kwargs) -> Call[R]:
        """Checks the arguments and encodes them, for `app.enqueue_many`."""
        key = ""
        if self._keyed:
            values = self._kind.input.bind(args, kwargs)
            key = self._key(values)
            text = self._kind.input.encode_values(values).decode()
        else:
            text = self._kind.input.encode(args, kwargs).decode()
        job_id = uuid7()
        # The last of two equal names counts: what the call says comes after what it inherits.
        text = f'{{"id":"{job_id.int:032x}"{self._prefix}{origin()}{self._auth}{key},"input":{text}}}'
        return Call(job_id, self._kind.name, text, self._words)

    def _key(self, values: dict[str, Any]) -> str:
        key = self._options.key
        if key is None and self._kind.key is not None:
            key = self._kind.key(values)
        if key is None:
            return ""
        scope = self._kind.key_for if self._options.key_for is None else self._options.key_for
        return f',"key":{json.dumps(key)},"key_for":{json.dumps(str(scope))}'

    async def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Hands the job in. When this returns, it survives any crash; with `conn`, as soon as that transaction commits."""
        call = self.call(*args, **kwargs)
        return call.handle(self._door, await hand_in(self._door, self._options.conn, call))

    def enqueue_sync(self, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """The same for code without an event loop."""
        call = self.call(*args, **kwargs)
        if self._options.conn is not None:
            from tenure.client.borrowing import enqueue_borrowed_sync  # noqa: PLC0415 - brings the driver

            return call.handle(self._door, enqueue_borrowed_sync(self._door, self._options.conn, [call.text], call.words))
        return call.handle(self._door, self._door.portal.run(hand_in(self._door, None, call)))


async def hand_in(door: Door, conn: object | None, call: Call[Any]) -> Met:
    if conn is None:
        return await door.session().enqueue([call.text], call.words)
    from tenure.client.borrowing import enqueue_borrowed  # noqa: PLC0415 - brings the driver

    return await enqueue_borrowed(door, conn, [call.text], call.words)


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
        timeout: Duration | None = None,
        delay: Duration | None = None,
        run_at: datetime | None = None,
        key: str | None = None,
        key_for: Duration | None = None,
        auth: Any = None,
        meta: dict[str, Any] | None = None,
        conn: object | None = None,
    ) -> BoundJob[P, R]:
        """The same job with other options for this call.

        `key`: while a job with this key stands (`key_for`: "live", "forever", or a duration), a second one is not made.
        `conn`: a connection or session of yours; the job is part of its transaction.
        `auth`, `meta`: any JSON; the handler finds it in its context.
        """
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
            timeout=None if timeout is None else to_seconds(timeout, what="timeout"),
            delay=None if delay is None else to_seconds(delay, what="delay") or None,
            run_at=run_at,
            key=checked(key, kind=self.name),
            key_for=None if key_for is None else key_scope(key_for),
            auth=auth,
            meta=meta,
            conn=conn,
        )
        return BoundJob(self._kind, self._door, options)

    def schema(self) -> dict[str, Any]:
        """JSON Schema of the job's input."""
        return self._kind.input.schema()

    def __repr__(self) -> str:
        return f"<Job {self.name!r}>"


async def enqueue_many(door: Door, calls: Iterable[Call[Any]], conn: object | None = None) -> list[Handle[Any]]:
    """All of them, or none, in one transaction. A generator is drawn from while earlier jobs are being written."""
    if conn is not None:
        return await _enqueue_borrowed(door, list(calls), conn)
    drawn: list[Call[Any]] = []
    told: set[str] = set()

    def chunks() -> Iterator[str]:
        source = iter(calls)
        while chunk := list(islice(source, CHUNK)):
            drawn.extend(chunk)
            told.update(*(call.words for call in chunk))
            yield "[" + ",".join([call.text for call in chunk]) + "]"

    met = await door.session().enqueue_bulk(chunks(), told)
    return [call.handle(door, met) for call in drawn]


async def _enqueue_borrowed(door: Door, calls: list[Call[Any]], conn: object) -> list[Handle[Any]]:
    from tenure.client.borrowing import enqueue_borrowed  # noqa: PLC0415 - brings the driver

    words = set().union(*(call.words for call in calls))
    met = await enqueue_borrowed(door, conn, [call.text for call in calls], words)
    return [call.handle(door, met) for call in calls]


def enqueue_many_sync(door: Door, calls: Iterable[Call[Any]], conn: object | None = None) -> list[Handle[Any]]:
    if conn is None:
        return door.portal.run(enqueue_many(door, calls))
    from tenure.client.borrowing import enqueue_borrowed_sync  # noqa: PLC0415 - brings the driver

    listed = list(calls)
    words = set().union(*(call.words for call in listed))
    met = enqueue_borrowed_sync(door, conn, [call.text for call in listed], words)
    return [call.handle(door, met) for call in listed]
