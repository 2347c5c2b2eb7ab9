"""A defined job: still a function, and now also something that can be enqueued."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Generic, ParamSpec, TypeVar
from uuid import UUID

from tenure.client.calls import Call, CallMaker
from tenure.client.enqueue import enqueue_call, enqueue_call_sync
from tenure.client.filters import to_id
from tenure.client.handle import Handle
from tenure.client.options import Options, call_options
from tenure.client.runtime import ClientRuntime
from tenure.model.durations import Duration
from tenure.model.kinds import Kind
from tenure.model.options import checks_options

__all__ = ["BoundJob", "Call", "Job"]

Q = ParamSpec("Q")  # the function's own parameters
P = ParamSpec("P")  # the same without the context: what is enqueued
T = TypeVar("T")  # what a direct call gives: a value or an awaitable
R = TypeVar("R")  # what the job results in


class _Enqueues(Generic[P, R]):
    """The verbs, for a job with given options."""

    def __init__(self, kind: Kind, runtime: ClientRuntime, options: Options) -> None:
        self._kind = kind
        self._runtime = runtime
        self._options = options
        self._maker = CallMaker(kind, options)

    def call(self, *args: P.args, **kwargs: P.kwargs) -> Call[R]:
        """Checks the arguments and encodes them, for `app.enqueue_many`."""
        return self._maker.of_arguments(self._kind, args, kwargs)

    async def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Enqueues the job. When this returns, it survives any crash; with `conn`, as soon as that transaction commits."""
        return await enqueue_call(self._runtime, self._options, self._maker.of_arguments(self._kind, args, kwargs))

    def enqueue_sync(self, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """The same for code without an event loop."""
        return enqueue_call_sync(self._runtime, self._options, self._maker.of_arguments(self._kind, args, kwargs))


class BoundJob(_Enqueues[P, R]):
    """A job with options of its own for this call: `job.using(delay="5m").enqueue(...)`."""


class Job(_Enqueues[P, R], Generic[Q, P, T, R]):
    """What `@app.job` makes of a function."""

    def __init__(self, kind: Kind, runtime: ClientRuntime) -> None:
        super().__init__(kind, runtime, Options())
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

    @checks_options("using()")
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
        key: str | int | UUID | bool | None = None,
        key_for: Duration | None = None,
        auth: Any = None,
        meta: Mapping[str, Any] | None = None,
        conn: object | None = None,
        notify: bool | None = None,
        within: Duration | None = None,
    ) -> BoundJob[P, R]:
        """The same job with other options for this call.

        `key`: while a job has this key (`key_for`: "forever", "live", or a duration), a second one is not made; True makes the
        key of the whole input. `conn`: a connection or session of yours; the job is part of its transaction, and with
        `notify=False` workers find it by polling. `auth`, `meta`: any JSON; the handler finds it in its context. `within`: how
        long to go on trying while PostgreSQL cannot be reached.
        """
        options = call_options(
            queue=queue,
            priority=priority,
            capability=capability,
            max_attempts=max_attempts,
            timeout=timeout,
            delay=delay,
            run_at=run_at,
            key=key,
            key_for=key_for,
            auth=auth,
            meta=meta,
            conn=conn,
            notify=notify,
            within=within,
            job=self.name,
        )
        return BoundJob(self._kind, self._runtime, options)

    def handle(self, job_id: UUID | str) -> Handle[R]:
        """A handle for a job of this kind that was enqueued elsewhere. Asks nothing yet."""
        return Handle(to_id(job_id), self.name, self._runtime)

    def schema(self) -> dict[str, Any]:
        """JSON Schema of the job's input."""
        return self._kind.input.schema()

    def __repr__(self) -> str:
        return f"<Job {self.name!r}>"
