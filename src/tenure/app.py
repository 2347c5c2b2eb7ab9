"""`Tenure`: the app object that users create. It joins the packages and contains no logic of its own."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, Unpack
from uuid import UUID

from tenure.client.ambient import AmbientTransaction
from tenure.client.connections import Connections
from tenure.client.handle import Handle
from tenure.client.job import Call, DefinedJobs
from tenure.client.locating import import_path, owner_name
from tenure.client.named import call_by_name
from tenure.client.options import CallOptions, call_options
from tenure.client.runtime import ClientRuntime
from tenure.client.sending import send_call, send_call_sync, send_many, send_many_sync
from tenure.decorators import Decorators
from tenure.job_collections import Jobs
from tenure.model.durations import Duration
from tenure.model.event_bus import Events
from tenure.model.kinds import Middleware, Registry
from tenure.model.options import check_option_names, checks_options, option_names
from tenure.model.reruns import refuse_in_rerun
from tenure.model.retries import Retry
from tenure.model.routes import route_of

# The driver is slow to import, and so are settings and statements: what needs them is imported when it is first used.
if TYPE_CHECKING:
    from tenure.client.client import Client
    from tenure.client.leases import Lease, SyncLease
    from tenure.client.schedules import Schedules
    from tenure.client.workflows import Workflows
    from tenure.flow.chains import Chains
    from tenure.flow.groups import Group
    from tenure.inprocess import InProcessWorker
    from tenure.settings import Settings
    from tenure.store.target import DatabaseTarget

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class MapJob(Protocol[R_co]):
    """A job, or `job.using(...)`."""

    def call(self, item: Any, /) -> Call[R_co]: ...


class Tenure(Decorators):
    """An app: its jobs and their database.

    Without a DSN it is read from TENURE_DSN, DATABASE_URL, tenure.toml or [tool.tenure] when it is first needed.
    Creating an app neither reads settings nor connects.
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
        """`retry` is the default for jobs without their own. Other keywords are settings."""
        if settings:
            known = [name for name in option_names(Tenure) if name != "settings"]
            check_option_names(settings, [*known, *_setting_names()], what="Tenure()")
        self.given = {"dsn": dsn, "schema": schema, "pooled": pooled, **settings}
        self._retry = None if retry is None else Retry.from_value(retry)
        self.kinds = self._new_registry()
        self.kinds.middleware += middleware
        self.kinds.home = _importable(sys._getframe(1).f_globals.get("__name__"))  # noqa: SLF001 - the module that creates the app
        self.events = Events()
        # The renewal of a worker on the same event loop may have to wait for as long as a notification takes.
        self._connections = Connections(lambda: self._database, lambda: max(1.0, self.settings.workers.renew_every))
        self._portal = self._connections.portal
        self._runtime = ClientRuntime(
            self._connections.session,
            self._portal,
            lambda: self._database,
            self.kinds,
            self.events,
            self.configure,
            direct=lambda: self._connections.direct,
            client_timeout=lambda: self.settings.client_timeout_seconds,
            notifies_in_transactions=lambda: self.settings.notify_in_transactions,
            default_retry=lambda: self._default_retry,
            route=lambda kind: route_of(self.settings.routes, kind),
            where=lambda: import_path(self),
            ambient=self._ambient_transaction(),
        )
        self._jobs = DefinedJobs(self._runtime)

    def _new_registry(self) -> Registry:
        return Registry()

    def _ambient_transaction(self) -> AmbientTransaction | None:
        """An app of a framework enqueues in the transaction that the framework has open."""
        return None

    @cached_property
    def settings(self) -> Settings:
        from tenure.settings import Settings  # noqa: PLC0415

        return Settings.load(**self.given)

    def configure(self, **given: Any) -> None:
        """Overrides settings that the code gave, for example by flags of the command line."""
        if given:
            check_option_names(given, _setting_names(), what="app.configure()")
        self.given.update({name: value for name, value in given.items() if value is not None})
        for name in ("settings", "_database", "_default_retry"):
            self.__dict__.pop(name, None)

    @contextmanager
    def _configured(self, **given: Any) -> Iterator[None]:
        """Overrides settings for as long as the block lasts, for tests."""
        before = dict(self.given)
        self.configure(**given)
        try:
            yield
        finally:
            self.given = before
            self.configure()  # forgets what was made from the other settings

    @cached_property
    def _database(self) -> DatabaseTarget:
        return self.settings.database

    @cached_property
    def _default_retry(self) -> Retry:
        return self.settings.retry if self._retry is None else self._retry

    def include(self, *collections: Jobs) -> None:
        """Adds the jobs of a collection, with their schedules, limits and middleware. They are enqueued by this app."""
        for collection in collections:
            collection.add_to(self.kinds, self._jobs, self._runtime)

    # Client

    def client(self) -> Client:
        """Finds, lists and controls jobs and queues."""
        from tenure.client.client import Client  # noqa: PLC0415

        return Client(self._runtime)

    @property
    def schedules(self) -> Schedules:
        """Creates, changes, pauses and lists schedules."""
        from tenure.client.schedules import Schedules  # noqa: PLC0415

        return Schedules(self._runtime)

    @property
    def chains(self) -> Chains:
        """Starts, finds, completes and deletes chains."""
        from tenure.flow.chains import Chains  # noqa: PLC0415

        return Chains(self._runtime)

    @property
    def workflows(self) -> Workflows:
        """Finds and controls workflows, also in processes that do not import their code."""
        from tenure.client.workflows import Workflows  # noqa: PLC0415

        return Workflows(self._runtime)

    async def enqueue(self, kind: str, input: Mapping[str, Any] | None = None, /, **options: Unpack[CallOptions]) -> Handle[Any]:  # noqa: A002
        """Enqueues a job by the name of its kind: `await app.enqueue("send_email", {"to": "ann"}, queue="mail")`.

        For services that do not import the handlers. `input` holds the arguments by name. They are checked if this app defines
        the kind; otherwise they are sent as given, with this app's defaults: give its queue. `options` are those of
        `job.using(...)`.
        """
        call, checked = call_by_name(self._runtime, kind, input, options)
        return await send_call(self._runtime, checked, call)

    def enqueue_sync(self, kind: str, input: Mapping[str, Any] | None = None, /, **options: Unpack[CallOptions]) -> Handle[Any]:  # noqa: A002
        call, checked = call_by_name(self._runtime, kind, input, options)
        return send_call_sync(self._runtime, checked, call)

    @checks_options("app.enqueue_many()")
    async def enqueue_many(
        self,
        calls: Iterable[Call[Any]],
        *,
        conn: object | None = None,
        in_transaction: Literal[False] | None = None,
        notify: bool | None = None,
        within: Duration | None = None,
    ) -> list[Handle[Any]]:
        """Enqueues many jobs in one transaction: all of them, or none. `calls` come from `job.call(...)`."""
        given = call_options("", "enqueue_many()", conn=conn, in_transaction=in_transaction, notify=notify, within=within)
        return await send_many(self._runtime, calls, given)

    @checks_options("app.enqueue_many_sync()")
    def enqueue_many_sync(
        self,
        calls: Iterable[Call[Any]],
        *,
        conn: object | None = None,
        in_transaction: Literal[False] | None = None,
        notify: bool | None = None,
        within: Duration | None = None,
    ) -> list[Handle[Any]]:
        given = call_options("", "enqueue_many()", conn=conn, in_transaction=in_transaction, notify=notify, within=within)
        return send_many_sync(self._runtime, calls, given)

    @checks_options("app.emit()")
    async def emit(
        self, event: str, payload: Any = None, *, key: str | int | UUID | None = None, conn: object | None = None
    ) -> None:
        """Sends an event to workflows that wait for it, now or later: `await app.emit("paid", receipt, key=order_id)`.

        With `conn`, your connection or session, it is sent when that transaction commits.
        """
        from tenure.client.emitting import emit  # noqa: PLC0415

        await emit(self._runtime, event, payload, key, conn)

    @checks_options("app.emit_sync()")
    def emit_sync(
        self, event: str, payload: Any = None, *, key: str | int | UUID | None = None, conn: object | None = None
    ) -> None:
        from tenure.client.emitting import emit_sync  # noqa: PLC0415

        emit_sync(self._runtime, event, payload, key, conn)

    @checks_options("app.gather()")
    async def gather(self, members: Iterable[Call[R] | Handle[R] | Group[Any]], *, conn: object | None = None) -> Group[R]:
        """Enqueues jobs as a group, in one transaction: `group = await app.gather([price.call(item) for item in items])`.

        `await group.results()` returns their results in order. `after=[group]` blocks a job until all have ended. Jobs that were
        enqueued before, and other groups, can be members as well.
        """
        from tenure.flow.grouping import gather  # noqa: PLC0415

        return await gather(self._runtime, members, conn)

    @checks_options("app.gather_sync()")
    def gather_sync(self, members: Iterable[Call[R] | Handle[R] | Group[Any]], *, conn: object | None = None) -> Group[R]:
        from tenure.flow.grouping import gather_sync  # noqa: PLC0415

        return gather_sync(self._runtime, members, conn)

    def group(self, group_id: UUID | str) -> Group[Any]:
        """A group by its id, in any process: `await app.group(id).progress()`. It is not looked up before it is used."""
        from tenure.client.filters import to_id  # noqa: PLC0415
        from tenure.flow.groups import Group  # noqa: PLC0415

        return Group(to_id(group_id), self._runtime)

    @checks_options("app.map()")
    async def map(self, job: MapJob[R], items: Iterable[Any], *, key: str | None = None) -> Group[R]:
        """Enqueues a job for each item, as one group: `group = await app.map(resize, paths, key="2030-01-01")`.

        In transactions of up to 1,000 jobs, so that a million items need no memory for a million. If the call is interrupted, the
        group stays open; the same call with the same `key` and items continues it.
        """
        from tenure.flow.grouping import map_items  # noqa: PLC0415

        return await map_items(self._runtime, job, items, key)

    @checks_options("app.map_sync()")
    def map_sync(self, job: MapJob[R], items: Iterable[Any], *, key: str | None = None) -> Group[R]:
        from tenure.flow.grouping import map_items_sync  # noqa: PLC0415

        return map_items_sync(self._runtime, job, items, key)

    @checks_options("app.lease()")
    def lease(self, name: str, *, wait: bool = True, timeout: Duration | None = None, duration: Duration = "15s") -> Lease:
        """A lock that one process holds at a time: `async with app.lease("nightly-import") as lease:`.

        Waits until it is free, at most for `timeout`; with `wait=False`, not at all. If it is not free in time, `LeaseTaken` is
        raised. It is renewed in the background. When its holder dies, another process can acquire it after `duration`.
        `lease.term` grows with every holder.
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
        """Migrates the schema to this version, as `tenure migrate` does."""
        from tenure.store.migrator import migrate  # noqa: PLC0415

        return await migrate(self._database)

    async def check(self) -> None:
        """Raises unless the database can be reached and its schema matches this code."""
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
        """A worker in this process. In production prefer `tenure worker`: no handler can delay the renewal of its lease."""
        refuse_in_rerun()
        from tenure.builtin import add_builtin_kinds  # noqa: PLC0415
        from tenure.inprocess import InProcessWorker  # noqa: PLC0415

        add_builtin_kinds(self.kinds, self._runtime)
        return InProcessWorker(
            self.kinds,
            self.settings,
            self.events,
            wakeups=self._connections.wakeups,
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
        """Runs a worker and a leader in this process, for tests and small services: `async with app.running():`."""
        worker = self.worker(queues=queues, concurrency=concurrency)
        await worker.start()
        try:
            yield worker
        finally:
            await worker.stop()

    async def close(self) -> None:
        """Closes what this event loop holds open. Optional: it also happens when the loop ends."""
        await self._connections.close()

    def close_sync(self) -> None:
        """Closes what code without an event loop holds open in this process. The next call opens it again."""
        self._connections.close_sync()


def _setting_names() -> list[str]:
    from tenure.settings import setting_names  # noqa: PLC0415

    return ["config", *setting_names()]


def _importable(module: object) -> str | None:
    return module if isinstance(module, str) and module != "__main__" else None
