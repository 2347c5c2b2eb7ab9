"""Contexts for handlers that a test calls directly."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from tenure.model.claimed_job import ClaimedJob
from tenure.model.definitions import define
from tenure.model.errors import ConfigError
from tenure.model.headers import checked_headers
from tenure.model.ids import uuid7
from tenure.model.kinds import Kind, Registry
from tenure.model.payloads import plain_json
from tenure.model.retries import Retry
from tenure.store.target import DatabaseTarget
from tenure.testing.runtimes import AnyJob, runtime_of
from tenure.worker.run.abort import AbortReason
from tenure.worker.run.context import Context
from tenure.worker.run.resources import Resources
from tenure.worker.run.run import Run
from tenure.worker.run.settlement import Settlement

if TYPE_CHECKING:
    from tenure.worker.run.transaction_block import TransactionBlock


class ReportedProgress(NamedTuple):
    percent: float
    message: str | None


class LoggedLine(NamedTuple):
    level: str
    message: str
    fields: dict[str, Any]


class RecordingServices:
    """Keeps what a handler reports."""

    def __init__(self, database: Callable[[], DatabaseTarget]) -> None:
        self.resources: Resources = LazyResources(database)
        self.kinds = Registry()
        self.reports: list[ReportedProgress] = []
        self.lines: list[LoggedLine] = []
        self.heartbeats = 0

    def progress(self, run: Run, percent: float, message: str | None) -> None:
        del run
        self.reports.append(ReportedProgress(percent, message))

    def alive(self, run: Run) -> None:
        del run
        self.heartbeats += 1

    def log_line(self, run: Run, level: str, message: str, fields: dict[str, Any]) -> None:
        del run
        self.lines.append(LoggedLine(level, message, fields))

    async def flush(self, run: Run) -> None:
        """Nothing is written."""

    def flush_sync(self, run: Run) -> None:
        """Nothing is written."""

    def settled(self, settlement: Settlement, *, watched: bool) -> None:
        """No job is settled: there is none."""

    def doubt(self, settlement: Settlement) -> None:
        """No job is settled."""


class LazyResources(Resources):
    """Needs a database only when the handler does."""

    def __init__(self, database: Callable[[], DatabaseTarget]) -> None:
        self._find_database = database
        super().__init__(None, 4)  # type: ignore[arg-type]  # the property below takes its place

    @property
    def database(self) -> DatabaseTarget:
        return self._find_database()

    @database.setter
    def database(self, value: DatabaseTarget) -> None:
        """Set by the parent's constructor, and not used."""


class RecordingContext(Context):
    """A context outside of a worker. It keeps what the handler reports; `transaction()` commits without completing a job."""

    __slots__ = ("_recorded",)

    def __init__(self, run: Run, services: RecordingServices) -> None:
        super().__init__(run, services)
        self._recorded = services

    @property
    def reports(self) -> list[ReportedProgress]:
        """What was given to `progress()`."""
        return self._recorded.reports

    @property
    def lines(self) -> list[LoggedLine]:
        """What was given to `ctx.log`."""
        return self._recorded.lines

    @property
    def heartbeats(self) -> int:
        return self._recorded.heartbeats

    def abort(self, reason: AbortReason = "canceled") -> None:
        """Sets `ctx.signal`, as a cancellation, a timeout or a shutdown does."""
        self._run.signal.abort(reason)

    def transaction(self, session: object | None = None, *, using: str | None = None) -> TransactionBlock:
        if session is None and using is None:
            session = self._default_session()
        if using is not None:
            from tenure.worker.run.transaction_block import django_session  # noqa: PLC0415 - brings the driver

            session = django_session(session, using)
        return PlainTransaction(session, self._recorded.resources)  # type: ignore[return-value]  # used in the same way


class PlainTransaction:
    """A transaction of the caller's, or on a connection of the app's database. Committed at the end of the block."""

    def __init__(self, given: object | None, resources: Resources) -> None:
        self._given = given
        self._resources = resources
        self._borrowed: Any = None
        self._close: Any = None
        self._block: Any = None

    async def __aenter__(self) -> Any:
        from tenure.store.borrowed import borrow, source_of  # noqa: PLC0415 - brings the driver

        source = source_of(self._given)
        connection = self._given
        if self._given is None:
            connection = await self._resources.pools.take()
            self._close = self._resources.pools.give
        elif source is not None:
            connection = await source.open() if source.is_async else source.open()
            self._close = source.close
        self._connection, self._borrowed = connection, borrow(connection)
        await self._borrowed.begin()
        return connection

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await (self._borrowed.commit() if error is None else self._borrowed.rollback())
        if self._close is not None and (closing := self._close(self._connection)) is not None:
            await closing

    def __enter__(self) -> Any:
        from tenure.store.borrowed import borrow, source_of  # noqa: PLC0415 - brings the driver
        from tenure.store.borrowed.django_adapter import django_block  # noqa: PLC0415

        source = source_of(self._given)
        connection = self._given
        if self._given is None:
            connection = self._resources.pools.take_sync()
            self._close = self._resources.pools.give_sync
        elif source is not None:
            connection = source.open()
            self._close = source.close
        self._connection, self._borrowed = connection, borrow(connection)
        if self._borrowed.thread_bound:  # Django's, perhaps inside of the transaction of a TestCase: then a savepoint
            self._block = django_block(connection)
            self._block.__enter__()
        else:
            self._borrowed.begin_sync()
        return connection

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._block is not None:
            self._block.__exit__(kind, error, trace)
        elif error is None:
            self._borrowed.commit_sync()
        else:
            self._borrowed.rollback_sync()
        if self._close is not None:
            self._close(self._connection)


def context(
    job: AnyJob | None = None,
    *,
    job_id: UUID | str | None = None,
    attempt: int = 1,
    max_attempts: int = 3,
    fence: int | None = None,
    queue: str = "default",
    input: Any = None,  # noqa: A002 - the term used everywhere
    auth: Any = None,
    meta: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
    schedule: str | None = None,
    scheduled_for: datetime | None = None,
) -> RecordingContext:
    """A context to call a handler with: `await charge(context(attempt=2), order_id=7)`.

    With `job`, `ctx.kind` is its name, and `ctx.db()` uses the database of its app. `ctx.reports` and `ctx.lines` have what the
    handler reported, and `ctx.abort("timeout")` sets its signal. For workflows: `workflow_context()`.
    """
    if job is not None and job.kind.is_workflow:
        raise ConfigError(f"{job.name!r} is a workflow: call it with workflow_context({job.name}, ...)")
    planned: dict[str, Any] = {}
    if schedule is not None or scheduled_for is not None:
        at = scheduled_for or datetime.now(UTC)
        planned = {"schedule": {"name": schedule or "test", "for": at.isoformat(), "late": False}}
    claimed = claimed_job(
        job,
        job_id=job_id,
        attempt=attempt,
        max_attempts=max_attempts,
        fence=fence,
        queue=queue,
        input=input,
        auth=auth,
        meta=meta,
        system=system_with(headers, **planned),
    )
    return recording_context(kind_of(job), claimed, database_of(job))


def claimed_job(
    job: AnyJob | None,
    *,
    job_id: UUID | str | None = None,
    attempt: int = 1,
    max_attempts: int = 3,
    fence: int | None = None,
    queue: str = "default",
    input: Any = None,  # noqa: A002 - the term used everywhere
    auth: Any = None,
    meta: Mapping[str, Any] | None = None,
    system: str | None = None,
) -> ClaimedJob:
    """As a worker would have claimed it."""
    return ClaimedJob(
        id=str(job_id or uuid7()),
        kind="test" if job is None else job.name,
        queue=queue,
        priority=50,
        position=1,
        attempt=attempt,
        max_attempts=max_attempts,
        crashes=0,
        fence=attempt if fence is None else fence,
        input=plain_json({} if input is None else input, what="input"),
        timeout=None,
        auth=None if auth is None else plain_json(auth, what="auth"),
        meta=None if meta is None else plain_json(dict(meta), what="meta"),
        system=system,
        limit_group=None,
    )


def system_with(headers: Mapping[str, str] | None, **more: Any) -> str | None:
    """The `system` column of a job with these headers."""
    system = {"headers": dict(checked_headers(headers, what="headers"))} | more if headers else more
    return json.dumps(system) if system else None


def kind_of(job: AnyJob | None) -> Kind:
    return _UNNAMED if job is None else job.kind


def database_of(job: AnyJob | None) -> Callable[[], DatabaseTarget]:
    return _no_database if job is None else runtime_of(job).database


def recording_context(kind: Kind, job: ClaimedJob, database: Callable[[], DatabaseTarget]) -> RecordingContext:
    return RecordingContext(Run(kind, job, str(uuid7()), str(uuid7())), RecordingServices(database))


def _no_database() -> DatabaseTarget:
    raise ConfigError("this context has no database: give it a job of your app, context(send_email, ...)")


def _nothing() -> None:
    """The handler of contexts without a job."""


_UNNAMED = define(_nothing, context_type=Context, default_retry=Retry, name="test")
