"""A job with its arguments, ready to be enqueued."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from uuid import UUID

from tenure.client.handle import Handle
from tenure.client.options import Options, Target
from tenure.client.origin import origin
from tenure.client.runtime import ClientRuntime
from tenure.model.events import JobEnqueued
from tenure.model.ids import uuid7
from tenure.model.keys import digest, input_key
from tenure.model.kinds import Kind
from tenure.model.payloads import plain_json

if TYPE_CHECKING:
    from tenure.client.enqueuer import ExistingJobs

log = logging.getLogger("tenure")

R = TypeVar("R")


@dataclass(slots=True)
class Call(Generic[R]):
    """A job with its arguments, checked and encoded, not yet enqueued. Made by `job.call(...)`."""

    id: UUID
    kind: str
    text: str
    words: frozenset[str]
    """Whom to notify once it is enqueued."""

    def handle(self, runtime: ClientRuntime, met: ExistingJobs) -> Handle[R]:
        """For the job that stands for this call: this one, or an earlier one with the same key."""
        if not met or str(self.id) not in met:
            if runtime.events.wants(JobEnqueued):
                runtime.events.emit(JobEnqueued(job_id=self.id, kind=self.kind))
            return Handle(self.id, self.kind, runtime)
        stands, differs = met[str(self.id)]
        if differs:
            log.warning("job %s (%s) has this key already, with different input", stands, self.kind)
        return Handle(stands, self.kind, runtime, existed=True, same_input=not differs)


class CallMaker:
    """Makes calls of one job with the same options."""

    def __init__(self, target: Target, options: Options) -> None:
        self._target = target
        self._options = options
        self._words = options.words(target)
        self._fixed = options.prefix(target)
        self._auth = "" if options.auth is None else ',"auth":' + plain_json(options.auth, what="auth")

    def of_arguments(self, kind: Kind, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call[Any]:
        if kind.key is None and self._options.key is None:
            return self._made(kind.input.encode(args, kwargs).decode(), None)
        values = kind.input.bind(args, kwargs)
        key = self._key_of(kind, values)
        return self._made(kind.input.encode_values(values).decode(), key)

    def of_input(self, given: Any) -> Call[Any]:
        """Of a kind that this app does not know: as given."""
        text = plain_json(given, what=f"the input of job {self._target.name!r}")
        key = self._options.key
        return self._made(text, digest(json.loads(text)) if key is True else key)

    def _key_of(self, kind: Kind, values: dict[str, Any]) -> str | None:
        key = self._options.key
        if key is True:
            return input_key(values, kind.signature, kind.input.encode_values)
        if key is None and kind.key is not None:
            return kind.key(values)
        return key

    def _made(self, text: str, key: str | None) -> Call[Any]:
        keyed = "" if key is None else f',"key":{json.dumps(key)},{self._scope}'
        job_id = uuid7()
        # The last of two equal names counts: what the call says comes after what it inherits.
        text = f'{{"id":"{job_id.int:032x}"{self._prefix}{origin()}{self._auth}{keyed},"input":{text}}}'
        return Call(job_id, self._target.name, text, self._words)

    @cached_property
    def _prefix(self) -> str:
        return self._fixed + self._options.attempts(self._target)

    @cached_property
    def _scope(self) -> str:
        scope = self._target.key_for if self._options.key_for is None else self._options.key_for
        return f'"key_for":{json.dumps(str(scope))}'
