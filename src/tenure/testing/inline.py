"""Runs jobs where they are enqueued, without a database or a worker."""

from __future__ import annotations

import asyncio
import contextvars
import json
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

from tenure.app import Tenure
from tenure.client.calls import Call, CallFields, this_process
from tenure.client.handle import Handle
from tenure.client.options import Options
from tenure.client.runtime import ClientRuntime
from tenure.client.status import JobStatus
from tenure.model.claimed_job import ClaimedJob
from tenure.model.current import current_run
from tenure.model.errors import ConfigError, JobCanceled, JobFailed, JobUnfinished
from tenure.model.kinds import Kind
from tenure.model.names import RESERVED
from tenure.model.outcomes import Outcome
from tenure.model.states import State
from tenure.model.system_data import SystemData
from tenure.testing.contexts import RecordingContext, recording_context, system_with
from tenure.testing.runtimes import runtime_of
from tenure.worker.run import settlement as settlements
from tenure.worker.run.calling import call_plain, on_loop
from tenure.worker.run.context import Context
from tenure.worker.run.middleware import compose
from tenure.worker.run.settlement import Settlement

Result = TypeVar("Result")


@contextmanager
def run_inline(app: Tenure, *, propagate: bool = True) -> Iterator[InlineRunner]:
    """While the block lasts, `enqueue` runs the job at once, in the caller's thread, and returns when it is over.

    Nothing is written to Tenure's tables. Delays and limits do not apply; a failed attempt is repeated at once, as often as the
    job's retry policy allows. With `propagate`, the error of a job that fails for good is raised where it was enqueued;
    without, by `handle.result()`.
    """
    runtime = runtime_of(app)
    runner = InlineRunner(runtime, propagate=propagate)
    runtime.interceptors.append(runner)
    try:
        yield runner
    finally:
        runtime.interceptors.remove(runner)


class InlineRunner:
    def __init__(self, runtime: ClientRuntime, *, propagate: bool) -> None:
        self._runtime = runtime
        self._propagate = propagate
        self._keys: dict[tuple[str, str], InlineHandle] = {}
        self.handles: list[InlineHandle] = []
        """Of all jobs that ran, in the order in which they were enqueued."""

    async def enqueue(self, calls: list[Call[Any]], options: Options) -> list[Handle[Any]]:
        del options
        return [await self._once(call) for call in calls]

    def enqueue_sync(self, calls: list[Call[Any]], options: Options) -> list[Handle[Any]]:
        del options
        return [self._once_sync(call) for call in calls]

    async def _once(self, call: Call[Any]) -> InlineHandle:
        _check(call)
        handle = self._handle(call)
        if handle.existed:
            return handle
        link: Call[Any] | None = call
        while link is not None:  # of its chain: `Continue` adds one
            kind = self._runtime.kinds[link.kind]
            for attempt in range(1, link.fields.max_attempts + 1):
                handle.settled(await self._attempt(kind, self._context(kind, link, attempt)))
                if handle.state != "retry":
                    break
            link = _next_link(handle.outcome)
        self._raise(handle)
        return handle

    def _once_sync(self, call: Call[Any]) -> InlineHandle:
        _check(call)
        kind = self._runtime.kinds[call.kind]
        if kind.signature.is_async or self._runtime.kinds.middleware or kind.middleware:
            return _blocking(self._once(call))
        handle = self._handle(call)
        if handle.existed:
            return handle
        link: Call[Any] | None = call
        while link is not None:
            kind = self._runtime.kinds[link.kind]
            for attempt in range(1, link.fields.max_attempts + 1):
                ctx = self._context(kind, link, attempt)
                handle.settled(_blocking(self._attempt(kind, ctx)) if kind.signature.is_async else self._plain(ctx))
                if handle.state != "retry":
                    break
            link = _next_link(handle.outcome)
        self._raise(handle)
        return handle

    def _handle(self, call: Call[Any]) -> InlineHandle:
        """The earlier one, if the key is taken."""
        key = (call.kind, call.key or "")
        if call.key is not None and key in self._keys:
            earlier = self._keys[key]
            return InlineHandle(earlier.id, call.kind, self._runtime, existed=True, outcome=earlier.outcome)
        handle = InlineHandle(call.id, call.kind, self._runtime)
        self.handles.append(handle)
        if call.key is not None:
            self._keys[key] = handle
        return handle

    def _context(self, kind: Kind, call: Call[Any], attempt: int) -> RecordingContext:
        if kind.is_workflow:
            raise ConfigError(
                f"workflow {kind.name!r} records its steps in the database: run it with drain(app, skip_sleeps=True)"
            )
        fields = call.fields
        job = ClaimedJob(
            id=str(call.id),
            kind=call.kind,
            queue=fields.queue,
            priority=fields.priority,
            position=1,
            attempt=attempt,
            max_attempts=fields.max_attempts,
            crashes=0,
            fence=attempt,
            input=call.input,
            timeout=fields.timeout,
            auth=call.auth,
            meta=call.meta,
            system=system_with(call.headers),
            limit_group=None,
        )
        return recording_context(kind, job, self._runtime.database)

    async def _attempt(self, kind: Kind, ctx: RecordingContext) -> Settlement:
        kinds = self._runtime.kinds
        handler = partial(on_loop, kinds) if kind.signature.is_async else self._in_thread
        chain = compose((*kinds.middleware, *kind.middleware), handler)
        token = current_run.set(ctx._run)  # noqa: SLF001
        try:
            return settlements.of_result(ctx._run, await chain(ctx))  # noqa: SLF001
        except Outcome as outcome:
            return settlements.of_outcome(ctx._run, outcome)  # noqa: SLF001
        except Exception as error:  # noqa: BLE001 - any error is an attempt that failed
            return settlements.of_error(ctx._run, error)  # noqa: SLF001
        finally:
            current_run.reset(token)

    async def _in_thread(self, ctx: Context) -> Any:
        return await asyncio.to_thread(call_plain, ctx, self._runtime.kinds)

    def _plain(self, ctx: RecordingContext) -> Settlement:
        token = current_run.set(ctx._run)  # noqa: SLF001
        try:
            return settlements.of_result(ctx._run, call_plain(ctx, self._runtime.kinds))  # noqa: SLF001
        except Outcome as outcome:
            return settlements.of_outcome(ctx._run, outcome)  # noqa: SLF001
        except Exception as error:  # noqa: BLE001 - any error is an attempt that failed
            return settlements.of_error(ctx._run, error)  # noqa: SLF001
        finally:
            current_run.reset(token)

    def _raise(self, handle: InlineHandle) -> None:
        if self._propagate and handle.outcome is not None and handle.outcome.cause is not None and handle.state == "dead_letter":
            raise handle.outcome.cause


class InlineHandle(Handle[Any]):
    """Of a job that has run already."""

    __slots__ = ("outcome",)

    def __init__(
        self, job_id: UUID, kind: str, runtime: ClientRuntime, *, existed: bool = False, outcome: Settlement | None = None
    ) -> None:
        super().__init__(job_id, kind, runtime, existed=existed)
        self.outcome = outcome

    @property
    def state(self) -> str:
        """Empty while the job runs."""
        return "" if self.outcome is None else self.outcome.state

    def settled(self, outcome: Settlement) -> None:
        self.outcome = outcome

    async def result(self, timeout: Any = None) -> Any:
        return self.result_sync(timeout)

    def result_sync(self, timeout: Any = None) -> Any:
        del timeout
        outcome = self.outcome
        if outcome is None or outcome.state not in ("completed", "canceled", "failed", "dead_letter"):
            raise JobUnfinished(self.id, self.kind, f"is {self.state or 'running'}, and run_inline() waits for nothing")
        if outcome.state == "completed":
            return outcome.run.kind.output.decode(outcome.output or "null")
        if outcome.state == "canceled":
            raise JobCanceled(self.id, self.kind, outcome.error)
        raise JobFailed(self.id, self.kind, State(outcome.state), outcome.error)

    async def status(self) -> JobStatus:
        return self.status_sync()

    def status_sync(self) -> JobStatus:
        outcome = self.outcome
        assert outcome is not None, "the job is still running"
        run, job, now = outcome.run, outcome.run.job, datetime.now(UTC)
        finished = now if outcome.finishing else None
        return JobStatus(
            id=self.id,
            kind=self.kind,
            queue=job.queue,
            state=State(outcome.state),
            priority=job.priority,
            capability=run.kind.capability,
            attempt=job.attempt,
            max_attempts=job.max_attempts,
            crashes=0,
            fence=job.fence,
            worker_id=UUID(run.worker_id),
            enqueued_at=self.enqueued_at or now,
            run_at=None,
            started_at=now,
            finished_at=finished,
            error=outcome.error,
            input=json.loads(job.input),
            output=None if outcome.output is None else json.loads(outcome.output),
            timeout=job.timeout,
            key=None,
            parent_id=None,
            enqueued_by=None,
            auth=None if job.auth is None else json.loads(job.auth),
            meta=None if job.meta is None else json.loads(job.meta),
            system=None if job.system is None else json.loads(job.system),
        )


def _check(call: Call[Any]) -> None:
    if call.fields.after or call.kind.startswith(RESERVED):
        raise ConfigError("groups, and jobs with after=, wait for other jobs in the database: run them with drain(app)")


def _next_link(outcome: Settlement | None) -> Call[Any] | None:
    """What a handler that returned `Continue` named."""
    if outcome is None or outcome.next is None:
        return None
    given = json.loads(outcome.next.job)
    names = ("kind", "queue", "priority", "max_attempts", "timeout")
    fields = CallFields(**{name: given[name] for name in names if name in given})
    auth, meta = (json.dumps(given[name]) if name in given else None for name in ("auth", "meta"))
    return Call(UUID(given["id"]), fields, json.dumps(given["input"]), this_process(), None, auth, meta).with_headers(
        SystemData.of(given.get("system")).headers
    )


def _blocking(work: Coroutine[Any, Any, Result]) -> Result:
    """For callers without `await`, who may nevertheless be in the thread of an event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    inside = contextvars.copy_context()
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(inside.run, asyncio.run, work).result()
