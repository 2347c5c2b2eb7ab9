"""What a handler knows about its run, and what it can do in it."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Generator, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

from tenure.model.headers import checked_headers
from tenure.model.ids import uuid7_time
from tenure.model.payloads import clean_text
from tenure.worker.run.abort import Signal
from tenure.worker.run.blocker_results import blocker_result
from tenure.worker.run.run import Run

if TYPE_CHECKING:
    import httpx2

    from tenure.worker.run.services import RunServices
    from tenure.worker.run.transaction_block import TransactionBlock

T = TypeVar("T")

NOT_SET = object()


class Done:
    """Can be awaited or not. Not a coroutine, so Python does not warn if it is not awaited."""

    def __await__(self) -> Generator[None, None, None]:
        yield  # one turn of the event loop, as `asyncio.sleep(0)`


DONE = Done()


class Context:
    """The run that a handler belongs to. A handler gets it by a parameter annotated `Context`. Put that one first: type checkers
    know it only there."""

    __slots__ = ("_log", "_output", "_run", "_services")

    def __init__(self, run: Run, services: RunServices) -> None:
        self._run = run
        self._services = services
        self._log: JobLog | None = None
        self._output: Any = NOT_SET

    @property
    def job_id(self) -> UUID:
        return self._run.job_uuid

    @property
    def kind(self) -> str:
        return self._run.kind.name

    @property
    def queue(self) -> str:
        return self._run.queue

    @property
    def attempt(self) -> int:
        """1 for the first; crashes and snoozes do not count."""
        return self._run.attempt

    @property
    def max_attempts(self) -> int:
        return self._run.job.max_attempts

    @property
    def fence(self) -> int:
        """Grows with every claim of this job. Pass it to other stores, so that they can reject an older run."""
        return self._run.fence

    @property
    def enqueued_at(self) -> datetime | None:
        """When the job's id was made, by the clock of the machine that enqueued it."""
        job_id = self._run.job_uuid
        return uuid7_time(job_id) if job_id.version == 7 else None

    @property
    def worker_id(self) -> UUID:
        return UUID(self._run.worker_id)

    @property
    def is_retry(self) -> bool:
        return self._run.attempt > 1

    @property
    def is_last_attempt(self) -> bool:
        return self._run.attempt >= self._run.job.max_attempts

    @property
    def signal(self) -> Signal:
        """Is set when this run is aborted, with the reason."""
        return self._run.signal

    @property
    def input(self) -> Any:
        """The job's input as plain JSON values; the handler itself gets it typed, as its arguments."""
        return json.loads(self._run.job.input)

    @property
    def auth(self) -> Any:
        """On whose behalf the job was enqueued: what `using(auth=...)` was given."""
        return None if self._run.job.auth is None else json.loads(self._run.job.auth)

    @property
    def meta(self) -> dict[str, Any]:
        """What `using(meta=...)` was given."""
        return {} if self._run.job.meta is None else json.loads(self._run.job.meta)

    @property
    def headers(self) -> Mapping[str, str]:
        """What hooks around the enqueue have added to the call by `call.with_headers(...)`, such as the context of a trace."""
        return self._run.system.headers

    def add_headers(self, headers: Mapping[str, str] | None = None, /, **more: str) -> None:
        """For middleware: the handler of this run reads these headers too, also in a process of its own. They are not stored, so
        the next run does not have them."""
        self._run.add_headers(checked_headers({**(headers or {}), **more}, what=f"the headers of job {self.kind!r}"))

    @property
    def schedule(self) -> str | None:
        """The name of the schedule that enqueued this job."""
        planned = self._run.system.planned
        return planned.schedule if planned else None

    @property
    def scheduled_for(self) -> datetime | None:
        """The planned time of this job. Jitter, queues and retries make it start later."""
        planned = self._run.system.planned
        return planned.at if planned else None

    @property
    def is_late(self) -> bool:
        """Enqueued more than a minute after its planned time: the schedule caught up, or waited for an earlier job to end."""
        planned = self._run.system.planned
        return planned is not None and planned.late

    @property
    def blockers(self) -> list[Any]:
        """The results of the chains that this job has waited for (`using(after=[...])`), in that order.

        One that did not complete is an exception, `JobFailed` or `JobCanceled`: such a job runs only with
        `on_blocker_failure="run"`.
        """
        return [blocker_result(row, self._services.kinds) for row in self._run.blockers if row.number > 0]

    # Reporting

    def progress(self, percent: float, message: str | None = None) -> Awaitable[None]:
        """Reports how far the job is, 0 to 100. Does not wait: the latest report is written soon, and always before the outcome.
        May be awaited, too."""
        percent = float(percent)
        if not 0 <= percent <= 100:
            raise ValueError(f"progress is a percentage from 0 to 100, not {percent}")
        self._services.progress(self._run, percent, message)
        return DONE

    def heartbeat(self) -> Awaitable[None]:
        """Extends the lease of a kind that has one of its own. Raises `Aborted` when the run is over. A plain call, or awaited:
        `await ctx.heartbeat()` also lets other handlers of the loop run."""
        self._run.signal.check()
        self._services.alive(self._run)
        return DONE

    @property
    def log(self) -> JobLog:
        """Lines that are logged with the job's context and kept with the job: the last 200 of each run."""
        if self._log is None:
            self._log = JobLog(self._run, self._services)
        return self._log

    # Database and HTTP

    def db(self) -> Database:
        """A pooled connection to Tenure's database: `async with ctx.db() as conn` (in plain functions `with`). Committed when
        the block ends without an error. In an atomic job it is the job's own transaction."""
        return Database(self)

    def transaction(self, session: object | None = None, *, using: str | None = None) -> TransactionBlock:
        """What is written in this block and the completion of the job commit together, or not at all.

        Without an argument: a connection of Tenure's own, or of the app's framework. With a session factory, an engine or a pool
        (SQLAlchemy, psycopg, asyncpg), or Django's connection: a session of yours. They commit when the handler has returned,
        with its result.

        With a session or connection that is already open: committed when the block ends, because it may be closed right after.
        `return ctx.set_output(result)` inside of the block puts the result into the same transaction.

        `using` names a database of Django's: `ctx.transaction(using="default")` is `ctx.transaction(connections["default"])`.
        """
        from tenure.worker.run.transaction_block import TransactionBlock, django_session  # noqa: PLC0415 - brings the store

        session = self._default_session() if session is None and using is None else session
        if using is not None:
            session = django_session(session, using)
        return TransactionBlock(self._run, self._services, session, lambda: None if self._output is NOT_SET else (self._output,))

    def _default_session(self) -> object | None:
        """Of the app's framework, if it has one. A block inside another is part of it."""
        run = self._run
        return None if run.kind.session is None or run.transaction is not None else run.kind.session()

    def set_output(self, output: T) -> T:
        """Sets the job's output before the handler returns, and returns it: `return ctx.set_output(result)`."""
        self._output = output
        return output

    def _result_of(self, returned: Any) -> Any:
        if returned is not None and returned is not DONE:  # what `return ctx.progress(100)` returns
            return returned
        return None if self._output is NOT_SET else self._output

    def http(self) -> httpx2.AsyncClient:
        """One HTTP client for all handlers of this process (extra `http`)."""
        return self._services.resources.http()

    def http_sync(self) -> httpx2.Client:
        return self._services.resources.http_sync()


def context_of(run: Run, services: RunServices) -> Context:
    """The context that the run's kind gives its handlers."""
    make = run.kind.context
    return Context(run, services) if make is None else make(run, services)


class Database:
    """A pooled connection for as long as its block lasts."""

    __slots__ = ("_block", "_context")

    def __init__(self, context: Context) -> None:
        self._context = context
        self._block: Any = None

    async def __aenter__(self) -> Any:
        context = self._context
        block: AbstractAsyncContextManager[Any]
        block = context.transaction() if context._run.transaction else context._services.resources.pools.connection()  # noqa: SLF001
        self._block = block
        return await block.__aenter__()

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self._block.__aexit__(kind, error, trace)

    def __enter__(self) -> Any:
        context = self._context
        block: AbstractContextManager[Any]
        block = context.transaction() if context._run.transaction else context._services.resources.pools.connection_sync()  # noqa: SLF001
        self._block = block
        return block.__enter__()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._block.__exit__(kind, error, trace)


class JobLog:
    """`ctx.log.info("sent", to=address)`: a message and fields."""

    __slots__ = ("_run", "_services")

    _logger = logging.getLogger("tenure.job")

    def __init__(self, run: Run, services: RunServices) -> None:
        self._run = run
        self._services = services

    def debug(self, message: object, /, **fields: Any) -> None:
        self._write(logging.DEBUG, message, fields)

    def info(self, message: object, /, **fields: Any) -> None:
        self._write(logging.INFO, message, fields)

    def warning(self, message: object, /, **fields: Any) -> None:
        self._write(logging.WARNING, message, fields)

    def error(self, message: object, /, **fields: Any) -> None:
        self._write(logging.ERROR, message, fields)

    def _write(self, level: int, message: object, fields: dict[str, Any]) -> None:
        from tenure.worker.run.updates import plain  # noqa: PLC0415 - brings the store

        text = str(plain(message))
        kept = {clean_text(name): plain(value) for name, value in fields.items()}
        if self._logger.isEnabledFor(level):
            self._logger.log(level, "%s", text, extra={"fields": kept} if kept else None)
        self._services.log_line(self._run, logging.getLevelName(level).lower(), text, kept)
