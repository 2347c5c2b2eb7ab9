"""Records what is enqueued, without a database."""

from __future__ import annotations

import json
from types import TracebackType
from typing import Any, Self

from tenure.app import Tenure
from tenure.client.calls import Call
from tenure.client.handle import Handle
from tenure.client.options import Options
from tenure.testing.enqueued_jobs import Arguments, EnqueuedJob, arguments_of, check_enqueued
from tenure.testing.runtimes import AnyJob, runtime_of


class Recorder:
    """While it is active, jobs of the app are recorded instead of enqueued: `with Recorder(app) as recorder:`.

    Arguments and options are checked as usual. `conn=` is ignored: what is rolled back stays recorded.
    """

    def __init__(self, app: Tenure) -> None:
        self._runtime = runtime_of(app)
        self.jobs: list[EnqueuedJob] = []
        """In the order in which they were enqueued."""

    def __enter__(self) -> Self:
        self._runtime.interceptors.append(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._runtime.interceptors.remove(self)

    def of(self, job: AnyJob) -> list[EnqueuedJob]:
        """The recorded jobs of one kind."""
        return [one for one in self.jobs if one.kind == job.name]

    def assert_enqueued(
        self,
        job: AnyJob,
        args: Arguments | None = None,
        *,
        times: int | None = None,
        queue: str | None = None,
        key: str | None = None,
    ) -> None:
        """As the function of the same name."""
        check_enqueued(self.jobs, job, args, times=times, queue=queue, key=key)

    async def enqueue(self, calls: list[Call[Any]], options: Options) -> list[Handle[Any]]:
        return self.enqueue_sync(calls, options)

    def enqueue_sync(self, calls: list[Call[Any]], options: Options) -> list[Handle[Any]]:
        del options
        self.jobs += [self._recorded(call) for call in calls]
        return [Handle(call.id, call.kind, self._runtime) for call in calls]

    def _recorded(self, call: Call[Any]) -> EnqueuedJob:
        kinds = self._runtime.kinds
        return EnqueuedJob(
            id=call.id,
            kind=call.kind,
            args=arguments_of(kinds.get(call.kind), call.input),
            queue=call.fields.queue,
            priority=call.fields.priority,
            state="",
            key=call.key,
            auth=None if call.auth is None else json.loads(call.auth),
            meta=None if call.meta is None else json.loads(call.meta),
            headers=call.headers,
            run_at=call.fields.run_at,
            delay=call.fields.delay,
        )
