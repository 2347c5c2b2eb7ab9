"""A job with its arguments, ready to be enqueued, and the JSON in which `tenure.enqueue()` takes it."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache, cached_property, lru_cache
from typing import Any, Generic, NamedTuple, TypeVar
from uuid import UUID

from tenure.client.options import Options, Target
from tenure.model.current import current_run
from tenure.model.headers import NO_HEADERS, checked_headers
from tenure.model.ids import uuid7
from tenure.model.keys import digest, input_key
from tenure.model.kinds import KeyScope, Kind
from tenure.model.outcomes import NextLink
from tenure.model.payloads import Json, plain_json
from tenure.model.wakeup import Wakeup

R_co = TypeVar("R_co", covariant=True)

DEFAULTS = {"queue": "default", "priority": 50, "max_attempts": 3}
"""The defaults of `tenure.enqueue()`. A field that equals its default is not sent."""


@dataclass(frozen=True, kw_only=True)
class CallFields:
    """What all calls of a job with the same options have in common."""

    kind: str
    queue: str = "default"
    priority: int = 50
    capability: str | None = None
    max_attempts: int = 3
    timeout: float | None = None
    delay: float | None = None
    run_at: datetime | None = None
    expires: float | None = None
    expires_at: datetime | None = None
    key_for: KeyScope | None = None
    """Sent only with a key. None: the default of `tenure.enqueue()`."""
    after: tuple[str, ...] = ()
    """The ids of chains that must end first."""
    on_failure: str | None = None
    """What happens if one of them fails. None: the default of `tenure.enqueue()`."""
    dependants: bool = False
    """A job is enqueued with it that waits for it: a group."""
    open: bool | None = None
    """Of a group without members: whether some are added later."""

    @cached_property
    def wakeups(self) -> frozenset[Wakeup]:
        """Whom to notify after the commit: the resolver, the stager, the workers of the queue, or both of these. PostgreSQL's
        clock decides whether `run_at` has passed, so such a job may concern either."""
        if self.after or self.open is not None:
            return frozenset({Wakeup.chain_ended()})
        wakeups = set()
        if self.delay is not None or self.run_at is not None:
            wakeups.add(Wakeup.job_scheduled())
        if self.delay is None:
            wakeups.add(Wakeup.new_jobs(self.queue))
        return frozenset(wakeups)

    @cached_property
    def is_plain(self) -> bool:
        """Whether `tenure.enqueue_one()` takes such a job, if it has no key either. It refuses all others."""
        rare = (self.delay, self.run_at, self.expires, self.expires_at, self.open)
        return not (self.after or self.dependants) and all(value is None for value in rare)

    @cached_property
    def json(self) -> str:
        """These fields as members of a JSON object. Rendered once for all calls that share them."""
        fields = {
            "kind": self.kind,
            "queue": self.queue,
            "priority": self.priority,
            "capability": self.capability,
            "max_attempts": self.max_attempts,
            "timeout": self.timeout,
            "delay": self.delay,
            "run_at": None if self.run_at is None else self.run_at.isoformat(),
            "expires": self.expires,
            "expires_at": None if self.expires_at is None else self.expires_at.isoformat(),
            "after": list(self.after) if self.after or self.open is not None else None,
            "on_failure": self.on_failure if self.after or self.open is not None else None,
            "dependants": self.dependants or None,
            "open": self.open,
        }
        sent = {name: value for name, value in fields.items() if value is not None and value != DEFAULTS.get(name)}
        return json.dumps(sent, separators=(",", ":"))[1:-1]

    @cached_property
    def key_for_json(self) -> str:
        return "" if self.key_for is None else f',"key_for":{json.dumps(str(self.key_for))}'


@dataclass(frozen=True)
class Sender:
    """Who enqueues a job: kept with the job, for its report."""

    by: str
    """Host and process, or the name of a user."""
    parent: str | None = None
    """The id of the running job that enqueues this one."""
    claim: str | None = None
    """The claim under which the parent runs. A parent that has lost its claim cannot enqueue."""

    @cached_property
    def json(self) -> str:
        parent = "" if self.parent is None else f',"parent":"{self.parent}","claim":"{self.claim}"'
        return f'"by":{json.dumps(self.by)}{parent}'


class Call(NamedTuple, Generic[R_co]):
    """A job with its arguments, checked and encoded, not yet enqueued. Made by `job.call(...)`.

    A tuple, because a frozen dataclass takes longer to create: encoding many calls would be 10 % slower.
    """

    id: UUID
    fields: CallFields
    input: Json
    sender: Sender
    key: str | None = None
    auth: Json | None = None
    meta: Json | None = None
    headers: Mapping[str, str] = NO_HEADERS
    """Stored in the `system` column."""

    @property
    def kind(self) -> str:
        return self.fields.kind

    def with_meta(self, **values: Any) -> Call[R_co]:
        """A copy whose `meta` also holds these values: `call.with_meta(tenant="blue")`. For the context of a trace, see
        `with_headers()`."""
        meta = {**json.loads(self.meta or "{}"), **values}
        return self._replace(meta=plain_json(meta, what=f"the meta of job {self.kind!r}"))

    def with_headers(self, headers: Mapping[str, str] | None = None, /, **more: str) -> Call[R_co]:
        """A copy that also has these headers: `call.with_headers(traceparent=...)`. The handler and its middleware read them as
        `ctx.headers`; they are apart from the user's `meta`."""
        all_headers = {**self.headers, **(headers or {}), **more}
        return self._replace(headers=checked_headers(all_headers, what=f"the headers of job {self.kind!r}"))

    def as_link(self) -> NextLink[R_co]:
        """As the next link of a chain. It has no key: the link before it is completed only once. Its parent's claim ends with
        the statement that writes it."""
        link = self._replace(key=None, sender=Sender(self.sender.by))
        return NextLink(job_json(link), tuple(sorted(self.fields.wakeups)))

    def sent_by(self, name: str) -> Call[R_co]:
        """A copy that names another sender."""
        return self._replace(sender=replace(self.sender, by=name))


def to_json(calls: Iterable[Call[Any]]) -> str:
    """The argument of `tenure.enqueue()`: a JSON array with an object for each call."""
    return f"[{','.join([job_json(call) for call in calls])}]"


def plain_job(calls: Sequence[Call[Any]]) -> str | None:
    """The argument of `tenure.enqueue_one()`, if this is a single job that it takes: one without a parent, key, blockers and
    times."""
    if len(calls) != 1:
        return None
    call = calls[0]
    return job_json(call) if call.key is None and call.sender.parent is None and call.fields.is_plain else None


def job_json(call: Call[Any]) -> Json:
    """The job as an object of that array."""
    # Not one dictionary for each call: the input is JSON already, and most members are the same for many calls.
    job_id, fields, text, sender, key, auth, meta, headers = call
    more = "" if auth is None else f',"auth":{auth}'
    if meta is not None:
        more += f',"meta":{meta}'
    if headers:
        more += f',"system":{{"headers":{json.dumps({**headers}, separators=(",", ":"))}}}'
    if key is not None:
        more += f',"key":{json.dumps(key)}{fields.key_for_json}'
    return f'{{"id":"{job_id.int:032x}",{fields.json},{sender.json}{more},"input":{text}}}'


class CallMaker:
    """Makes calls of one job with the same options."""

    def __init__(self, target: Target, options: Options) -> None:
        self._target = target
        self._options = options
        self._auth, self._meta = options.auth, options.meta
        _check_texts(target.name, options.queue, options.capability or target.capability)  # here, where the options are written

    @cached_property
    def _fields(self) -> CallFields:
        """Made at the first call, because the app's default of `max_attempts` may have to be read from its settings."""
        target, options = self._target, self._options
        return _fields_of(
            kind=target.name,
            queue=options.queue or target.queue,
            priority=target.priority if options.priority is None else options.priority,
            capability=options.capability or target.capability,
            max_attempts=options.max_attempts or target.retry.max_attempts,
            timeout=options.timeout,
            delay=options.delay,
            run_at=options.run_at,
            expires=self._expires(),
            expires_at=options.expires_at,
            key_for=target.key_for if options.key_for is None else options.key_for,
            after=options.after,
            on_failure=options.on_blocker_failure,
        )

    def _expires(self) -> float | None:
        if self._options.expires is not None or self._options.expires_at is not None:
            return self._options.expires
        return None if self._target.expires is None else self._target.expires.total_seconds()

    def of_arguments(self, kind: Kind, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call[Any]:
        if kind.key is None and self._options.key is None:
            return self._make(kind.input.encode(args, kwargs).decode(), None)
        values = kind.input.bind(args, kwargs)
        key = self._key_of(kind, values)
        return self._make(kind.input.encode_values(values).decode(), key)

    def of_input(self, given: Any) -> Call[Any]:
        """For a kind that this app does not define: the input is sent as given."""
        text = plain_json(given, what=f"the input of job {self._target.name!r}")
        key = self._options.key
        return self._make(text, digest(json.loads(text)) if key is True else key)

    def _key_of(self, kind: Kind, values: dict[str, Any]) -> str | None:
        key = self._options.key
        if key is True:
            return input_key(values, kind.signature, kind.input.encode_values)
        if key is None and kind.key is not None:
            return kind.key(values)
        return key

    def _make(self, text: Json, key: str | None) -> Call[Any]:
        """A job that is enqueued by a running job inherits its `auth`, unless the call has its own."""
        run = current_run.get()
        if run is None:
            return _new(Call, (uuid7(), self._fields, text, this_process(), key, self._auth, self._meta, NO_HEADERS))
        auth = run.auth if self._auth is None else self._auth
        sender = Sender(this_process().by, run.job_id, run.claim_id)
        return _new(Call, (uuid7(), self._fields, text, sender, key, auth, self._meta, NO_HEADERS))


# `using()` makes a new maker for each call, mostly with options that it has seen before: their text is rendered and checked once.
_fields_of: Callable[..., CallFields] = lru_cache(maxsize=512)(CallFields)


@lru_cache(maxsize=512)
def _check_texts(kind: str, queue: str | None, capability: str | None) -> None:
    plain_json([kind, queue, capability], what=f"the options of job {kind!r}")


_new: Callable[..., Call[Any]] = tuple.__new__  # as `Call(...)`, without a call of a Python function for each job


@cache
def this_process() -> Sender:
    return Sender(f"{socket.gethostname()}:{os.getpid()}")


os.register_at_fork(after_in_child=this_process.cache_clear)  # a forked process is another sender
