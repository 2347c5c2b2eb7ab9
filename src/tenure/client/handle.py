"""What an enqueue gives back: the job's id, and the way to ask about it."""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import AsyncIterator, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast
from uuid import UUID

from tenure.client.locating import find_runtime
from tenure.client.portal import twin
from tenure.client.runtime import ClientRuntime
from tenure.client.status import JobStatus, JobUpdate, Progress
from tenure.model.durations import Duration, to_seconds
from tenure.model.errors import InvalidOutput, JobCanceled, JobFailed, JobNotFound, ResultTimeout
from tenure.model.ids import uuid7_time
from tenure.model.outcomes import Cancel, Fail, Snooze
from tenure.model.states import State
from tenure.store import jobs

if TYPE_CHECKING:
    from tenure.client.client import Client
    from tenure.client.explain import Explanation
    from tenure.client.report.life import Report
    from tenure.store.query import Fetch

R_co = TypeVar("R_co", covariant=True)
X = TypeVar("X")

OVER = frozenset({State.COMPLETED, State.FAILED, State.CANCELED, State.DEAD_LETTER})
"""Nothing more happens by itself."""

WATCHED_FOR = 900.0
"""Seconds for which a worker is asked to say when the job moves; asked again when they are over."""


OUTPUT_PAUSE, OUTPUT_LONGEST_PAUSE = 0.02, 0.5
"""Seconds between two looks for an output that is added to a completed job."""

LATE = object()
"""The time was up before the output was added."""


class Handle(Generic[R_co]):
    """A job that was accepted. Can be pickled: in another process it asks through the same app there."""

    __slots__ = ("_known_runtime", "_where", "existed", "id", "kind", "same_input")

    def __init__(
        self, job_id: UUID, kind: str, runtime: ClientRuntime, *, existed: bool = False, same_input: bool = True
    ) -> None:
        self.id = job_id
        self.kind = kind
        """Empty for a handle that was made of an id alone."""
        self.existed = existed
        """A job with this key was there before, and this is it."""
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

    # Asking

    async def status(self) -> JobStatus:
        return await self._status(self._reads())

    async def _status(self, read: Fetch) -> JobStatus:
        rows = await read(jobs.find(str(self.id)))
        if not rows:
            raise JobNotFound(self.id)
        return JobStatus.from_row(rows[0])

    async def progress(self) -> Progress | None:
        """How far the job says it is; None when it has not said."""
        rows = await self._reads()(jobs.find_progress(str(self.id)))
        return Progress(*rows[0]) if rows else None

    async def report(self) -> Report:
        """The job's whole life."""
        from tenure.client.report.gather import gather  # noqa: PLC0415 - seldom asked for

        report = await gather(self._reads(), self.id)
        if report is None:
            raise JobNotFound(self.id)
        return report

    def _reads(self, seconds: float | None = None) -> Fetch:
        """Repeated while PostgreSQL is away: for as long as enqueues are, or so many seconds."""
        return self._runtime.session().reader(self._runtime.patience() if seconds is None else seconds)

    async def explain(self) -> Explanation:
        """Why the job is not running."""
        return await self._client.explain(self.id)

    # Waiting

    async def result(self: Handle[X | Snooze | Fail | Cancel], timeout: Duration | None = None) -> X:
        """What the job resulted in, once it is done. Raises `JobFailed`, `JobCanceled` or `ResultTimeout`."""
        # `self` names every outcome: type checkers take those out of `-> bool | Fail`, and pyright only those it finds by name.
        seconds = None if timeout is None else to_seconds(timeout, what="timeout")
        began = time.monotonic()
        status = await self._over(seconds)
        if status.state not in OVER:
            raise ResultTimeout(self.id, status.kind, status.state, seconds or 0.0)
        if status.state == State.CANCELED:
            raise JobCanceled(self.id, status.kind, status.error)
        if status.state != State.COMPLETED:
            raise JobFailed(self.id, status.kind, status.state, status.error)
        output = await self._output(status, None if seconds is None else began + seconds)
        if output is LATE:
            raise ResultTimeout(self.id, status.kind, status.state, seconds or 0.0)
        return cast("X", output)

    def result_sync(self: Handle[X | Snooze | Fail | Cancel], timeout: Duration | None = None) -> X:
        return self._runtime.portal.run(self.result(timeout))

    async def _output(self, status: JobStatus, deadline: float | None) -> Any:
        """Typed. None, where the run that owed it ended without adding it, even if the annotation does not allow None."""
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
        """A job that a session of its handler's own has completed has no output until the handler returns. Waits for it while the
        run is alive."""
        read, pause = self._reads(), OUTPUT_PAUSE
        while rows := await read(jobs.find_late_output(str(self.id))):
            text, owed = rows[0]
            if text is not None:
                return json.loads(text)
            if not owed:
                break
            left = math.inf if deadline is None else deadline - time.monotonic()
            if left <= 0:
                return LATE
            await asyncio.sleep(min(pause, left))
            pause = min(pause * 1.5, OUTPUT_LONGEST_PAUSE)
        return None

    async def watch(self) -> AsyncIterator[JobUpdate]:
        """Each change of state or progress, as far as it can be seen, until the job is over."""
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
        """Looks at the job at once and whenever there may be news, until it is over or the time is up."""
        began = time.monotonic()
        read = self._reads(math.inf if seconds is None else seconds)
        status = await self._status(read)
        yield status
        session = self._runtime.session()
        watched = -WATCHED_FOR
        async with session.waiting.on(str(self.id)) as news:
            while status.state not in OVER:
                now = time.monotonic()
                left = WATCHED_FOR if seconds is None else began + seconds - now
                if left <= 0:
                    return
                if now - watched > WATCHED_FOR / 2:
                    # Said before we look: whoever begins to settle the job after that will know that we wait.
                    await read(jobs.watch(str(self.id), WATCHED_FOR))
                    watched = now
                else:
                    await news.wait(left)
                status = await self._status(read)
                yield status

    def _typed(self, kind: str, output: Any) -> Any:
        """By the job's own annotation, where this app knows it."""
        kinds = self._runtime.kinds
        return kinds[kind].output.decode(json.dumps(output)) if kind in kinds else output

    # Deciding

    async def cancel(self, reason: str | None = None, *, by: str | None = None, conn: object | None = None) -> bool:
        """Cancels the job, whatever it waits for; a run that is under way is aborted. False: it was over already.

        With `conn`, a connection or session of yours, it is canceled when that transaction commits.
        """
        return await self._client.cancel(self.id, reason=reason, by=by, conn=conn) > 0

    def cancel_sync(self, reason: str | None = None, *, by: str | None = None, conn: object | None = None) -> bool:
        return self._client.cancel_sync(self.id, reason=reason, by=by, conn=conn) > 0

    async def retry(self) -> Handle[R_co]:
        """Runs it again now. A finished job stays as it is: a new one is made of it."""
        return Handle(await self._client.retry(self.id), self.kind, self._runtime)

    async def delete(self, *, force: bool = False) -> bool:
        """Removes the job and all that is kept of it. While it runs, only with `force`."""
        return await self._client.delete(self.id, force=force) > 0

    @property
    def _client(self) -> Client:
        from tenure.client.client import Client  # noqa: PLC0415 - stands above

        return Client(self._runtime)

    status_sync = twin(status)
    progress_sync = twin(progress)
    report_sync = twin(report)
    explain_sync = twin(explain)
    retry_sync = twin(retry)
    delete_sync = twin(delete)

    def __repr__(self) -> str:
        return f"Handle({self.kind!r}, {self.id})"


def _unpickled(job_id: UUID, kind: str, existed: bool, same_input: bool, where: str) -> Handle[Any]:
    handle: Handle[Any] = Handle.__new__(Handle)
    handle.id, handle.kind, handle.existed, handle.same_input = job_id, kind, existed, same_input
    handle._known_runtime, handle._where = None, where  # noqa: SLF001 - its own module
    return handle
