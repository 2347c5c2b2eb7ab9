"""`Tenure`: the one object a user makes. It joins the rooms and does nothing by itself."""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, overload

from tenure.client.enqueue import enqueue_call, enqueue_call_sync, enqueue_many, enqueue_many_sync
from tenure.client.handle import Handle
from tenure.client.job import Call, Job
from tenure.client.locating import import_path, owner_name
from tenure.client.named import call_by_name
from tenure.client.options import call_options
from tenure.client.portal import Portal
from tenure.client.runtime import ClientRuntime
from tenure.decorators import JOB_OPTIONS, CronDecorator, JobDecorator, define
from tenure.model.declared import schedule_of
from tenure.model.durations import Duration
from tenure.model.errors import ConfigError
from tenure.model.events import Event, Events, check_event_types
from tenure.model.keys import KeyGiven
from tenure.model.kinds import Middleware, Registry, RunIn
from tenure.model.limits import LimitGiven, RateGiven, to_rules
from tenure.model.names import check_name
from tenure.model.options import check_option_names, checks_options, option_names
from tenure.model.reruns import refuse_in_rerun
from tenure.model.retries import Retry
from tenure.model.schedules import DEFAULT_LIMIT, CatchUp, Overlap
from tenure.settings import Settings, setting_names
from tenure.worker.run.context import Context

# The driver is slow to import: what needs it is imported when it is first used.
if TYPE_CHECKING:
    from tenure.client.client import Client
    from tenure.client.direct import DirectEnqueuer
    from tenure.client.leases import Lease, SyncLease
    from tenure.client.schedules import Schedules
    from tenure.client.session import Session
    from tenure.inprocess import InProcessWorker
    from tenure.store.target import DatabaseTarget
    from tenure.store.wakeups import Wakeups

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R")
M = TypeVar("M", bound=Middleware)
S = TypeVar("S", bound=Callable[..., Any])
H = TypeVar("H", bound=Callable[..., Any])


class Tenure:
    """An app: the jobs it knows and the database they live in.

    Without a DSN it is looked for in TENURE_DSN, DATABASE_URL, tenure.toml and [tool.tenure], when it is first needed.
    Nothing happens at import or construction.
    """

    def __init__(
        self,
        dsn: str | None = None,
        *,
        schema: str | None = None,
        pooled: bool | None = None,
        retry: Retry | int | Mapping[str, Any] | None = None,
        middleware: Sequence[Middleware] = (),
        **settings: Any,
    ) -> None:
        """`retry` is the default of all jobs that have none of their own. Other keywords are settings."""
        known = [name for name in option_names(Tenure) if name != "settings"]
        check_option_names(settings, [*known, "config", *setting_names()], what="Tenure()")
        self.given = {"dsn": dsn, "schema": schema, "pooled": pooled, **settings}
        self._retry = None if retry is None else Retry.from_value(retry)
        self.kinds = Registry()
        self.kinds.middleware += middleware
        self.kinds.home = _importable(sys._getframe(1).f_globals.get("__name__"))  # noqa: SLF001 - the module that makes the app
        self.events = Events()
        self._sessions: dict[asyncio.AbstractEventLoop, Session] = {}
        self._wakeups: dict[tuple[asyncio.AbstractEventLoop, DatabaseTarget], Wakeups] = {}
        self._portal = Portal()
        self._runtime = ClientRuntime(
            self._session,
            self._portal,
            lambda: self._database,
            self.kinds,
            self.events,
            self.configure,
            direct=lambda: self._direct,
            patience=lambda: self.settings.client_timeout_seconds,
            notifies_in_transactions=lambda: self.settings.notify_in_transactions,
            default_retry=lambda: self._default_retry,
            where=lambda: import_path(self),
        )

    @cached_property
    def settings(self) -> Settings:
        return Settings.load(**self.given)

    def configure(self, **given: Any) -> None:
        """Settings that win over those in the code: what the command line says, for all that this app does."""
        check_option_names(given, ["config", *setting_names()], what="app.configure()")
        self.given.update({name: value for name, value in given.items() if value is not None})
        for name in ("settings", "_database", "_direct", "_default_retry"):
            self.__dict__.pop(name, None)

    @cached_property
    def _database(self) -> DatabaseTarget:
        return self.settings.database

    @cached_property
    def _direct(self) -> DirectEnqueuer:
        refuse_in_rerun()
        from tenure.client.direct import DirectEnqueuer  # noqa: PLC0415

        return DirectEnqueuer(self._database)

    @cached_property
    def _default_retry(self) -> Retry:
        return self.settings.retry if self._retry is None else self._retry

    # Defining

    @overload
    def job(
        self, fn: Callable[Concatenate[Context, P], Coroutine[Any, Any, R]], /
    ) -> Job[Concatenate[Context, P], P, Coroutine[Any, Any, R], R]: ...
    @overload
    def job(self, fn: Callable[P, Coroutine[Any, Any, R]], /) -> Job[P, P, Coroutine[Any, Any, R], R]: ...
    @overload
    def job(self, fn: Callable[Concatenate[Context, P], R], /) -> Job[Concatenate[Context, P], P, R, R]: ...
    @overload
    def job(self, fn: Callable[P, R], /) -> Job[P, P, R, R]: ...
    @overload
    def job(
        self,
        *,
        name: str | None = None,
        queue: str = "default",
        priority: int | str = "normal",
        retry: Retry | int | None = None,
        max_attempts: int | None = None,
        timeout: Duration | None = "1h",
        capability: str | None = None,
        lease: Duration | None = None,
        run_in: RunIn | None = None,
        key: KeyGiven | None = None,
        key_for: Duration = "forever",
        atomic: bool = False,
        retention: Duration | None = None,
        middleware: Sequence[Middleware] = (),
        concurrency: LimitGiven | None = None,
        rate: RateGiven | None = None,
        fair_by: str | None = None,
    ) -> JobDecorator: ...

    def job(self, *given: Callable[..., Any], **options: Any) -> Any:
        """Makes a job of a function. Use it bare, `@app.job`, or with options, `@app.job(queue="mail")`."""
        check_option_names(options, JOB_OPTIONS, what="@app.job")

        def decorate(function: Callable[..., Any]) -> Job[Any, Any, Any, Any]:
            kind = define(function, default_retry=self._runtime.default_retry, **options)
            self.kinds.add(kind)
            return Job(kind, self._runtime)

        return decorate(*given) if given else decorate

    @checks_options("@app.cron")
    def cron(
        self,
        cron: str | None = None,
        /,
        *,
        every: Duration | None = None,
        timezone: str | None = None,
        name: str | None = None,
        input: Any = None,  # noqa: A002 - the word for it
        queue: str | None = None,
        priority: int | str | None = None,
        overlap: Overlap = "skip",
        catch_up: CatchUp = "one",
        catch_up_limit: int = DEFAULT_LIMIT,
        jitter: Duration = 0,
    ) -> CronDecorator:
        """Enqueues a job at the times of a cron expression, `@app.cron("0 9 * * *", timezone="Europe/Berlin")`, or at intervals,
        `@app.cron(every="10s")`. Above a function it makes a job of it; above `@app.job(...)` it adds to that.

        `input` is the job's input as JSON, `name` the schedule's (else that of the job). `overlap`: what happens to a planned
        time while an earlier job of it is live. `catch_up`: what happens to times that nobody was there to record.
        """

        def declare(given: Any) -> Any:
            job = given if isinstance(given, Job) else self.job(given)
            declared = schedule_of(
                job.kind,
                name=name,
                input=input,
                cron=cron,
                every=every,
                timezone=timezone,
                queue=queue,
                priority=priority,
                overlap=overlap,
                catch_up=catch_up,
                catch_up_limit=catch_up_limit,
                jitter=jitter,
            )
            self.kinds.declare(declared)
            return job

        decorator: CronDecorator = declare
        return decorator

    def duty(
        self,
        cron: str | None = None,
        /,
        *,
        every: Duration | None = None,
        timezone: str | None = None,
        name: str | None = None,
        jitter: Duration = 0,
        **options: Any,
    ) -> JobDecorator:
        """A function that is run once in the whole fleet, again and again: `@app.duty(every="1m")`. Never twice at a time, never
        repeated, never caught up. It runs as a job, because the processes that lead run no code of yours. `options` are
        those of `@app.job`."""

        def declare(function: Callable[..., Any]) -> Job[Any, Any, Any, Any]:
            job: Job[Any, Any, Any, Any] = self.job(**{"name": name, "max_attempts": 1, **options})(function)
            declared = schedule_of(
                job.kind, cron=cron, every=every, timezone=timezone, overlap="skip", catch_up="none", jitter=jitter
            )
            self.kinds.declare(declared)
            return job

        own = ("every", "timezone", "name", "jitter")
        check_option_names(options, [*JOB_OPTIONS, *own], what="@app.duty")
        decorator: JobDecorator = declare
        return decorator

    @checks_options("limit()")
    def limit(
        self,
        *,
        queue: str,
        concurrency: LimitGiven | None = None,
        rate: RateGiven | None = None,
        fair_by: str | None = None,
    ) -> None:
        """Limits a queue over the whole fleet: how many run at a time, how many start in a while, and who takes turns."""
        rules = to_rules(concurrency, rate, fair_by, what=f"the limit of queue {queue!r}")
        if "\n" in check_name(queue, what="limit(): queue") or not rules:
            raise ConfigError(f"limit(queue={queue!r}): give a name without line breaks, and concurrency=, rate= or fair_by=")
        if self.kinds.queue_limits.get(queue, rules) != rules:
            raise ConfigError(f"queue {queue!r} is limited twice: give all of it in one limit()")
        self.kinds.queue_limits[queue] = rules

    def middleware(self, layer: M) -> M:
        """Puts `async def layer(ctx, call_next)` around every job of this app; the first one is the outermost."""
        self.kinds.middleware.append(layer)
        return layer

    def around_thread(self, hook: H) -> H:
        """Enters `hook(ctx)`, a context manager, in the thread that runs a plain handler, around each job: in a process
        of its own, too. A generator function with one `yield` will do. The first hook is the outermost. What a hook raises fails
        the job.

        For what belongs to a thread, such as Django's connections. Coroutine handlers have `around_coroutine`.
        """
        if inspect.isasyncgenfunction(hook) or inspect.iscoroutinefunction(hook):
            raise ConfigError(f"around_thread: {hook.__qualname__} is asynchronous: write it with `def`, or use around_coroutine")
        self.kinds.around_thread.append(contextmanager(hook) if inspect.isgeneratorfunction(hook) else hook)
        return hook

    def around_coroutine(self, hook: H) -> H:
        """Enters `hook(ctx)`, an asynchronous context manager, in the task that runs a coroutine handler, around each job: in a
        process of its own, too. An asynchronous generator function with one `yield` will do."""
        if inspect.isgeneratorfunction(hook) or inspect.iscoroutinefunction(hook):
            raise ConfigError(f"around_coroutine: {hook.__qualname__} must be `async def` with one `yield`, or use around_thread")
        self.kinds.around_coroutine.append(asynccontextmanager(hook) if inspect.isasyncgenfunction(hook) else hook)
        return hook

    def on(self, *types: type[Event]) -> Callable[[S], S]:
        """Subscribes a function, plain or async, to what happens in this process: `@app.on(JobSettled)`."""
        check_event_types(types)

        def subscribe(subscriber: S) -> S:
            self.events.subscribe(types, subscriber)
            return subscriber

        return subscribe

    # Asking

    def client(self) -> Client:
        """To find, list and control jobs and queues."""
        from tenure.client.client import Client  # noqa: PLC0415

        return Client(self._runtime)

    @property
    def schedules(self) -> Schedules:
        """To make, change, pause and look at schedules."""
        from tenure.client.schedules import Schedules  # noqa: PLC0415

        return Schedules(self._runtime)

    async def enqueue(self, kind: str, input: Mapping[str, Any] | None = None, /, **options: Any) -> Handle[Any]:  # noqa: A002
        """Enqueues a job by the name of its kind: `await app.enqueue("send_email", {"to": "ann"}, queue="mail")`.

        For services that do not import the handlers. `input` are the arguments by name; those of a kind that this app defines
        are checked. `options` are those of `job.using(...)`. A kind that this app does not define is enqueued as given, with
        this app's defaults: name its queue.
        """
        call, checked = call_by_name(self._runtime, kind, input, options)
        return await enqueue_call(self._runtime, checked, call)

    def enqueue_sync(self, kind: str, input: Mapping[str, Any] | None = None, /, **options: Any) -> Handle[Any]:  # noqa: A002
        call, checked = call_by_name(self._runtime, kind, input, options)
        return enqueue_call_sync(self._runtime, checked, call)

    @checks_options("app.enqueue_many()")
    async def enqueue_many(
        self,
        calls: Iterable[Call[Any]],
        *,
        conn: object | None = None,
        notify: bool | None = None,
        within: Duration | None = None,
    ) -> list[Handle[Any]]:
        """Enqueues many jobs in one transaction: all of them, or none."""
        return await enqueue_many(self._runtime, calls, call_options(conn=conn, notify=notify, within=within, job=""))

    @checks_options("app.enqueue_many_sync()")
    def enqueue_many_sync(
        self,
        calls: Iterable[Call[Any]],
        *,
        conn: object | None = None,
        notify: bool | None = None,
        within: Duration | None = None,
    ) -> list[Handle[Any]]:
        return enqueue_many_sync(self._runtime, calls, call_options(conn=conn, notify=notify, within=within, job=""))

    @checks_options("app.lease()")
    def lease(self, name: str, *, wait: bool = True, timeout: Duration | None = None, duration: Duration = "15s") -> Lease:
        """Work of your own that one process does at a time: `async with app.lease("nightly-import") as lease:`.

        Waits until it is free; at most for `timeout`; not at all with `wait=False`: then `LeaseTaken` is raised. It is renewed in
        the background. When its holder dies, another can have it after `duration`. `lease.term` grows with every holder.
        """
        from tenure.client.leases import Lease  # noqa: PLC0415

        return Lease(name, self._runtime, wait=wait, timeout=timeout, duration=duration)

    @checks_options("app.lease_sync()")
    def lease_sync(
        self, name: str, *, wait: bool = True, timeout: Duration | None = None, duration: Duration = "15s"
    ) -> SyncLease:
        """The same for code without an event loop: `with app.lease_sync("nightly-import") as lease:`."""
        from tenure.client.leases import SyncLease  # noqa: PLC0415

        return SyncLease(self.lease(name, wait=wait, timeout=timeout, duration=duration), self._runtime)

    async def migrate(self) -> list[str]:
        """Brings the schema to this version. `tenure migrate` does the same."""
        from tenure.store.migrator import migrate  # noqa: PLC0415

        return await migrate(self._database)

    async def check(self) -> None:
        """Raises unless the database can be reached and its schema fits this code."""
        from tenure.store.connecting import check_settings  # noqa: PLC0415
        from tenure.store.migrator import check_schema  # noqa: PLC0415

        await check_settings(self._database)
        await check_schema(self._database)

    def migrate_sync(self) -> list[str]:
        return self._portal.run(self.migrate())

    def check_sync(self) -> None:
        self._portal.run(self.check())

    # Running

    @checks_options("app.worker()")
    def worker(
        self,
        *,
        queues: Sequence[str] | None = None,
        concurrency: int | None = None,
        capabilities: Sequence[str] = (),
        grace: Duration | None = None,
        name: str | None = None,
    ) -> InProcessWorker:
        """A worker in this process. In production prefer `tenure worker`, whose lease no handler can hold up."""
        refuse_in_rerun()
        from tenure.inprocess import InProcessWorker  # noqa: PLC0415

        return InProcessWorker(
            self.kinds,
            self.settings,
            self.events,
            wakeups=self._wakeups_here,
            owner=self.settings.name or owner_name(self, self.kinds),
            queues=queues,
            concurrency=concurrency,
            capabilities=capabilities,
            grace=grace,
            name=name,
        )

    @checks_options("app.running()")
    @asynccontextmanager
    async def running(
        self, *, queues: Sequence[str] | None = None, concurrency: int | None = None
    ) -> AsyncIterator[InProcessWorker]:
        """Worker and leader inside your own process, for tests and small services."""
        worker = self.worker(queues=queues, concurrency=concurrency)
        await worker.start()
        try:
            yield worker
        finally:
            await worker.stop()

    async def close(self) -> None:
        """Closes what this event loop holds open. Optional: it also happens when the loop ends."""
        session = self._sessions.get(asyncio.get_running_loop())
        if session is not None:
            await session.close()

    def close_sync(self) -> None:
        """Closes what code without an event loop holds open in this process. Whatever is called afterwards opens it again."""
        self._portal.close()
        if "_direct" in self.__dict__:
            self._direct.close()

    def _session(self) -> Session:
        refuse_in_rerun()
        loop = asyncio.get_running_loop()
        session = self._sessions.get(loop)
        if session is None:
            from tenure.client.session import Session  # noqa: PLC0415

            session = self._sessions[loop] = Session(
                self.settings.database, self._wakeups_here(), ended=lambda: self._sessions.pop(loop, None)
            )
        return session

    def _share(self, wakeups: Wakeups) -> None:
        """Makes clients of this app in the running event loop use these, instead of connections of their own."""
        self._wakeups[asyncio.get_running_loop(), self.settings.database] = wakeups

    def _wakeups_here(self) -> Wakeups:
        """One LISTEN and one NOTIFY for the client and the workers of an event loop."""
        from tenure.store.wakeups import Wakeups  # noqa: PLC0415

        database = self.settings.database
        key = asyncio.get_running_loop(), database
        if key not in self._wakeups:
            within = max(1.0, self.settings.workers.renew_every)  # the renewal of a worker may have to wait for that long
            self._wakeups[key] = Wakeups(database, within=within, ended=lambda: self._wakeups.pop(key, None))
        return self._wakeups[key]


def _importable(module: object) -> str | None:
    return module if isinstance(module, str) and module != "__main__" else None
