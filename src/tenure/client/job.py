"""A defined job: still a function, which can also be enqueued."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Generic, ParamSpec, TypeVar, Unpack
from uuid import UUID

from tenure.client.calls import Call, CallMaker
from tenure.client.handle import Handle
from tenure.client.options import CallOptions, Options, call_options
from tenure.client.runtime import ClientRuntime
from tenure.client.sending import send_call, send_call_sync, within_hooks
from tenure.model.errors import ConfigError
from tenure.model.kinds import Kind
from tenure.model.outcomes import NextLink

__all__ = ["BoundJob", "Call", "DefinedJobs", "Job"]

Q = ParamSpec("Q")  # the function's own parameters
P = ParamSpec("P")  # the same without the context: what is enqueued
T = TypeVar("T")  # what a direct call returns: a value or an awaitable
R = TypeVar("R")  # the result of the job


class _Enqueues(Generic[P, R]):
    """Enqueues a job with given options."""

    def __init__(self, kind: Kind, runtime: ClientRuntime, options: Options, maker: CallMaker | None = None) -> None:
        self._kind = kind
        self._runtime = runtime
        self._options = options
        self._maker = maker or CallMaker(kind, options)

    def call(self, *args: P.args, **kwargs: P.kwargs) -> Call[R]:
        """Checks the arguments and encodes them, for `app.enqueue_many`."""
        return self._maker.of_arguments(self._kind, args, kwargs)

    def _within_hooks(self, call: Call[R]) -> AbstractContextManager[Sequence[Call[R]]]:
        """For a workflow that starts this job: the hooks around an enqueue. Gives the call as it is to be written."""
        return within_hooks(self._runtime, [call])

    def link(self, *args: P.args, **kwargs: P.kwargs) -> NextLink[R]:
        """For `Continue(job, ...)`: the next link of the chain of the current job."""
        if self._options.conn is not None or self._options.key is not None:
            raise ConfigError(
                f"Continue({self._kind.name}.using(...)) takes neither conn= nor key=: the link is written with its predecessor"
            )
        with within_hooks(self._runtime, [self.call(*args, **kwargs)]) as calls:
            return calls[0].as_link()

    async def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Enqueues the job. When this returns, the job survives any crash; with `conn`, as soon as that transaction commits."""
        return await send_call(self._runtime, self._options, self._maker.of_arguments(self._kind, args, kwargs))

    def enqueue_sync(self, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """The same for code without an event loop."""
        return send_call_sync(self._runtime, self._options, self._maker.of_arguments(self._kind, args, kwargs))


class BoundJob(_Enqueues[P, R]):
    """A job with other options for one call: `job.using(delay="5m").enqueue(...)`."""


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
        """Calls the function directly, without enqueuing anything."""
        result: T = self._kind.fn(*args, **kwargs)
        return result

    def using(self, **options: Unpack[CallOptions]) -> BoundJob[P, R]:
        """The same job with other options for this call: `job.using(delay="5m", priority="low").enqueue(...)`.

        `key`: while a job has this key (`key_for`: "forever", "live", or a duration), no second one is made; True makes the key
        from the whole input. `conn`: your connection or session; the job is part of its transaction, and with `notify=False`
        workers find it by polling. `in_transaction=False`: not part of the transaction that Django has open here. `auth`,
        `meta`: any JSON; the handler reads it from its context. `within`: how long to repeat the enqueue while PostgreSQL
        cannot be reached.
        """
        checked = call_options(self.name, "using()", **options)
        # A connection changes nothing in the calls.
        return BoundJob(self._kind, self._runtime, checked, self._maker if options.keys() == {"conn"} else None)

    def handle(self, job_id: UUID | str) -> Handle[R]:
        """A handle for a job of this kind that was enqueued elsewhere. Sends no statement."""
        from tenure.client.filters import to_id  # noqa: PLC0415 - most processes that enqueue do not ask for their jobs

        return Handle(to_id(job_id), self.name, self._runtime)

    def schema(self) -> dict[str, Any]:
        """JSON Schema of the job's input."""
        return self._kind.input.schema()

    def __repr__(self) -> str:
        return f"<Job {self.name!r}>"

    def _move(self, kind: Kind, runtime: ClientRuntime) -> None:
        """To an app that includes it."""
        _Enqueues.__init__(self, kind, runtime, Options())


class DefinedJobs(Mapping[str, Job[Any, Any, Any, Any]]):
    """The jobs that an app defines, by name. An unknown name raises `UnknownKind`, which lists the nearest names."""

    def __init__(self, runtime: ClientRuntime) -> None:
        self._runtime = runtime
        self._jobs: dict[str, Job[Any, Any, Any, Any]] = {}

    def __getitem__(self, name: str) -> Job[Any, Any, Any, Any]:
        kind = self._runtime.kinds[name]
        job = self._jobs.get(name)
        moved = job is not None and job._runtime is not self._runtime  # noqa: SLF001 - of a collection, included by an app
        if job is None or (job.kind is not kind and not moved):
            job = self._jobs[name] = Job(kind, self._runtime)
        return job

    def adopt(self, job: Job[Any, Any, Any, Any], kind: Kind) -> None:
        """A job of a collection becomes this app's: from now on, it is enqueued by this app."""
        job._move(kind, self._runtime)  # noqa: SLF001 - its own module
        self._jobs[kind.name] = job

    def __iter__(self) -> Iterator[str]:
        return iter(self._runtime.kinds)

    def __len__(self) -> int:
        return len(self._runtime.kinds)
