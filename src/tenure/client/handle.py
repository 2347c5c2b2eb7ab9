"""What an enqueue returns: the job's id, and methods to wait for the job and to control it."""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import AsyncIterator, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, Never, TypeVar, overload
from uuid import UUID

from tenure.client.locating import find_runtime
from tenure.client.portal import sync_version
from tenure.client.runtime import ClientRuntime
from tenure.model.durations import Duration, to_seconds
from tenure.model.errors import InvalidOutput, JobCanceled, JobFailed, JobNotFound, ResultTimeout
from tenure.model.ids import uuid7_time
from tenure.model.outcomes import Cancel, Continue, Fail, Output, RetryAfter, Snooze
from tenure.model.states import State
from tenure.model.wakeup import Wakeup

# Most processes that enqueue do not ask for their jobs. What only reads is imported when it is first used.
if TYPE_CHECKING:
    from tenure.client.client import Client
    from tenure.client.explain import Explanation
    from tenure.client.report.life import Report
    from tenure.client.status import JobStatus, JobUpdate, Progress
    from tenure.store.query import Fetch

R_co = TypeVar("R_co", covariant=True)
X = TypeVar("X", bound=Output | None)
Y = TypeVar("Y", bound=Output | None)

OVER = frozenset({State.COMPLETED, State.FAILED, State.CANCELED, State.DEAD_LETTER})
"""Final unless the job is retried or replayed."""

WATCHED_FOR = 900.0
"""Seconds for which workers notify this client of changes of the job; renewed while it waits."""


OUTPUT_PAUSE, OUTPUT_LONGEST_PAUSE = 0.02, 0.5
"""Seconds between two polls for an output that is added to a completed job."""

LATE = object()
"""The timeout passed before the output was added."""


class Handle(Generic[R_co]):
    """A job that was accepted. Can be pickled: another process uses it through the same app there."""

    __slots__ = ("_known_runtime", "_where", "existed", "id", "kind", "same_input")

    def __init__(
        self, job_id: UUID, kind: str, runtime: ClientRuntime, *, existed: bool = False, same_input: bool = True
    ) -> None:
        self.id = job_id
        self.kind = kind
        """Empty for a handle that was made from an id alone."""
        self.existed = existed
        """This is an earlier job with the same key; no new job was made."""
        self.same_input = same_input
        """False when that one was given other input."""
        self._known_runtime: ClientRuntime | None = runtime
        self._where = ""

    @property
    def enqueued_at(self) -> datetime | None:
        """When the job's id was made, by the clock of the machine that enqueued it. PostgreSQL's own is in `status()`."""
        return uuid7_time(self.id) if self.id.version == 7 else None

    @property
    def _runtime(self) -> ClientRuntime:
        if self._known_runtime is None:
            self._known_runtime = find_runtime(self._where)
        return self._known_runtime

    def __reduce__(self) -> tuple[Any, ...]:
        where = self._where if self._known_runtime is None else self._known_runtime.where()
        return _unpickled, (self.id, self.kind, self.existed, self.same_input, where)

    # Reading

    async def status(self) -> JobStatus:
        return await self._status(self._reads())

    async def _status(self, read: Fetch) -> JobStatus:
        from tenure.client.status import JobStatus  # noqa: PLC0415
        from tenure.store import jobs  # noqa: PLC0415

        rows = await read(jobs.find(str(self.id)))
        if not rows:
            raise JobNotFound(self.id)
        return JobStatus.from_row(rows[0])

    async def progress(self) -> Progress | None:
        """The progress that the job reported; None if it has not."""
        from tenure.client.status import Progress  # noqa: PLC0415
        from tenure.store import jobs  # noqa: PLC0415

        rows = await self._reads()(jobs.find_progress(str(self.id)))
        return Progress(rows[0].percent, rows[0].message, rows[0].updated_at) if rows else None

    async def report(self) -> Report:
        """The history of the job: attempts, errors, timeline."""
        from tenure.client.report.gather import gather  # noqa: PLC0415 - rarely used

        report = await gather(self._reads(), self.id)
        if report is None:
            raise JobNotFound(self.id)
        return report

    def _reads(self, seconds: float | None = None) -> Fetch:
        """Repeats statements while PostgreSQL is away, for `seconds`, or as long as enqueues are repeated."""
        return self._runtime.session().reader(self._runtime.client_timeout() if seconds is None else seconds)

    async def explain(self) -> Explanation:
        """Why the job is not running."""
        return await self._client.explain(self.id)

    # Waiting

    # `self` names every outcome, so that type checkers remove them from `-> bool | Fail`. The first overload is for
    # `Handle[Any]`.
    @overload
    async def result(self: Handle[Never], timeout: Duration | None = None) -> Any: ...
    @overload
    async def result(
        self: Handle[X | Snooze | RetryAfter | Fail | Cancel | Continue[Y]], timeout: Duration | None = None
    ) -> X | Y: ...

    async def result(self: Handle[Any], timeout: Duration | None = None) -> Any:
        """Waits for the job and returns its result; if it continues with other jobs (`Continue`), that of the last of them.
        Raises `JobFailed`, `JobCanceled` or `ResultTimeout`."""
        seconds = None if timeout is None else to_seconds(timeout, what="timeout")
        deadline = None if seconds is None else time.monotonic() + seconds
        last, status = await self._end_of_chain(deadline)
        if status.state not in OVER:
            raise ResultTimeout(status.id, status.kind, status.state, seconds or 0.0)
        if status.state == State.CANCELED:
            raise JobCanceled(status.id, status.kind, status.error)
        if status.state != State.COMPLETED:
            raise JobFailed(status.id, status.kind, status.state, status.error)
        output = await last._output(status, deadline)  # noqa: SLF001 - of the same class
        if output is LATE:
            raise ResultTimeout(status.id, status.kind, status.state, seconds or 0.0)
        return output

    @overload
    def result_sync(self: Handle[Never], timeout: Duration | None = None) -> Any: ...
    @overload
    def result_sync(
        self: Handle[X | Snooze | RetryAfter | Fail | Cancel | Continue[Y]], timeout: Duration | None = None
    ) -> X | Y: ...

    def result_sync(self: Handle[Any], timeout: Duration | None = None) -> Any:
        return self._runtime.portal.run(self.result(timeout))

    async def _end_of_chain(self, deadline: float | None) -> tuple[Handle[Any], JobStatus]:
        """The last link of the chain, when it is over or the time is up."""
        handle: Handle[Any] = self
        while True:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            try:
                status = await handle._over(left)
            except JobNotFound:
                # The first links of a long chain may be older than the history that is kept.
                if (tail := await self._tail(self.id)) is None or tail == handle.id:
                    raise
            else:
                if status.next_id is None:
                    return handle, status
                tail = await self._tail(status.chain_id or self.id) or status.next_id
            handle = Handle(tail, "", self._runtime)

    async def _tail(self, chain_id: UUID) -> UUID | None:
        from tenure.store import chains  # noqa: PLC0415

        [row] = await self._reads()(chains.find_tail(str(chain_id)))
        return row.id

    async def _output(self, status: JobStatus, deadline: float | None) -> Any:
        """Typed. None if the run ended without adding an output, even if the annotation does not allow None."""
        output = status.output
        if output is None and (kind := self._runtime.kinds.get(status.kind)) is not None and kind.output.is_always_none:
            return None
        if output is None and (output := await self._late_output(deadline)) is LATE:
            return LATE
        try:
            return self._typed(status.kind, output)
        except InvalidOutput:
            if output is not None:
                raise
            return None

    async def _late_output(self, deadline: float | None) -> Any:
        """A job that was completed in a session of its handler has no output until the handler returns. Waits for it while the
        run is alive."""
        from tenure.store import late_outputs  # noqa: PLC0415

        read, pause = self._reads(), OUTPUT_PAUSE
        while rows := await read(late_outputs.find_late_output(str(self.id))):
            late = rows[0]
            if late.output is not None:
                return json.loads(late.output)
            if not late.owed:
                break
            left = math.inf if deadline is None else deadline - time.monotonic()
            if left <= 0:
                return LATE
            await asyncio.sleep(min(pause, left))
            pause = min(pause * 1.5, OUTPUT_LONGEST_PAUSE)
        return None

    async def watch(self) -> AsyncIterator[JobUpdate]:
        """Yields changes of state or progress until the job is over. Changes in quick succession may be yielded as one."""
        from tenure.client.status import JobUpdate  # noqa: PLC0415

        last: tuple[Any, ...] | None = None
        async for status in self._looks(None):
            progress = await self.progress()
            seen = (status.state, status.attempt, status.fence, progress)
            if seen != last:
                yield JobUpdate(status, progress)
                last = seen

    def watch_sync(self) -> Iterator[JobUpdate]:
        updates = self.watch()

        async def following() -> JobUpdate | None:
            return await anext(updates, None)

        while (update := self._runtime.portal.run(following())) is not None:
            yield update

    async def _over(self, seconds: float | None) -> JobStatus:
        async for status in self._looks(seconds):  # noqa: B007 - the last one counts
            pass
        return status

    async def _looks(self, seconds: float | None) -> AsyncIterator[JobStatus]:
        """Reads the job at once and after each notification or poll interval, until it is over or the timeout passes."""
        from tenure.store import jobs  # noqa: PLC0415

        began = time.monotonic()
        read = self._reads(math.inf if seconds is None else seconds)
        status = await self._status(read)
        yield status
        session = self._runtime.session()
        watched = -WATCHED_FOR
        async with session.waiting.on(Wakeup.job_ended(self.id), Wakeup.progress_changed(self.id)) as news:
            while status.state not in OVER:
                now = time.monotonic()
                left = WATCHED_FOR if seconds is None else began + seconds - now
                if left <= 0:
                    return
                if now - watched > WATCHED_FOR / 2:
                    # Written before the job is read: a worker that settles the job after that will notify us.
                    await read(jobs.watch(str(self.id), WATCHED_FOR))
                    watched = now
                else:
                    await news.wait(left)
                status = await self._status(read)
                yield status

    def _typed(self, kind: str, output: Any) -> Any:
        """By the job's return annotation, if this app defines the job."""
        kinds = self._runtime.kinds
        return kinds[kind].output.decode(json.dumps(output)) if kind in kinds else output

    # Changing

    async def cancel(
        self, reason: str | None = None, *, by: str | None = None, conn: object | None = None, force: bool = False
    ) -> bool:
        """Cancels the job in any live state, or the live link of its chain; a running handler is aborted. False: the chain was
        over already, or is a canceled workflow that still rolls back. `force=True` ends a workflow at once, without
        undoing the rest.

        With `conn`, your connection or session, it is canceled when that transaction commits.
        """
        if await self._client.cancel(self.id, reason=reason, by=by, conn=conn, force=force):
            return True
        following = await self._continued()
        return following is not None and await following.cancel(reason, by=by, conn=conn, force=force)

    def cancel_sync(
        self, reason: str | None = None, *, by: str | None = None, conn: object | None = None, force: bool = False
    ) -> bool:
        if self._client.cancel_sync(self.id, reason=reason, by=by, conn=conn, force=force):
            return True
        following = self._runtime.portal.run(self._continued())
        return following is not None and following.cancel_sync(reason, by=by, conn=conn, force=force)

    async def _continued(self) -> Handle[Any] | None:
        """The last link of the chain, if this one was continued."""
        status = await self.status()
        if status.next_id is None:
            return None
        return Handle(await self._tail(status.chain_id or self.id) or status.next_id, "", self._runtime)

    async def signal(self, name: str, payload: Any = None, *, by: str | None = None) -> None:
        """Sends a signal to a workflow, which receives it by `ctx.wait_for_signal(name)`, now or later, also after it has begun
        again by `ctx.continue_as_new()`. Raises `NotPossible` if the workflow is over."""
        from tenure.client.emitting import signal_job  # noqa: PLC0415

        await signal_job(self._runtime, self.id, name, payload, by)

    async def query(self) -> Any:
        """What the workflow reported about itself by `ctx.set_status()`; None if nothing. If it has begun again by
        `ctx.continue_as_new()`, what its current run reported."""
        from tenure.store import steps  # noqa: PLC0415

        rows = await self._reads()(steps.find_status(str(self.id)))
        return json.loads(rows[0]) if rows and rows[0] is not None else None

    async def retry(self) -> Handle[R_co]:
        """Runs the job again now. A finished job stays as it is, and a copy of it runs."""
        return Handle(await self._client.retry(self.id), self.kind, self._runtime)

    async def delete(self, *, force: bool = False) -> bool:
        """Deletes the job and everything stored about it. A running job only with `force`."""
        return await self._client.delete(self.id, force=force) > 0

    @property
    def _client(self) -> Client:
        from tenure.client.client import Client  # noqa: PLC0415 - imports this module

        return Client(self._runtime)

    status_sync = sync_version(status)
    progress_sync = sync_version(progress)
    report_sync = sync_version(report)
    explain_sync = sync_version(explain)
    signal_sync = sync_version(signal)
    query_sync = sync_version(query)
    retry_sync = sync_version(retry)
    delete_sync = sync_version(delete)

    def __repr__(self) -> str:
        return f"Handle({self.kind!r}, {self.id})"


def _unpickled(job_id: UUID, kind: str, existed: bool, same_input: bool, where: str) -> Handle[Any]:
    handle: Handle[Any] = Handle.__new__(Handle)
    handle.id, handle.kind, handle.existed, handle.same_input = job_id, kind, existed, same_input
    handle._known_runtime, handle._where = None, where  # noqa: SLF001 - its own module
    return handle
