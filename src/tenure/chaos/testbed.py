"""The testbed of a campaign, with everything that a fault can hit: a server, workers, proxies, a pooler and a small disk."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any

import psycopg
from psycopg import AsyncConnection

from tenure.chaos import recorder
from tenure.chaos.campaign_options import CampaignOptions
from tenure.chaos.disk import SmallDisk
from tenure.chaos.pooler import PGBOUNCER, Pooler, free_port
from tenure.chaos.proxy import Proxy
from tenure.chaos.tenure_process import TenureProcess
from tenure.chaos.workers import CampaignWorker, WorkerGroup, worker_command, worker_environment
from tenure.embedded import EmbeddedServer, find_binaries
from tenure.store.migrator import migrate
from tenure.store.target import DatabaseTarget

SERVER_SETTINGS = {"max_connections": "400", "max_wal_size": "2GB"}

NOTIFY_PAGES = 64
"""The smallest NOTIFY queue that PostgreSQL allows. The embedded server uses it; the default one takes minutes to fill."""

NOTIFY_PAGES_SINCE = 17
"""The version of PostgreSQL in which the size of the NOTIFY queue can be set."""

PROXIED_WORKERS = ("worker-1", "worker-2")
APP = "tenure.chaos.scheduled_jobs:app"
POOLED_ROLE = "chaos_pooled"
"""The role of the worker behind the pooler: settings of the role cannot be overridden there, so it has none."""

SESSION_OPTIONS = " ".join(
    f"-c {name}={value}"
    for name, value in {
        "default_transaction_isolation": r"read\ committed",
        "statement_timeout": "0",
        "lock_timeout": "0",
        "idle_in_transaction_session_timeout": "0",
        "search_path": "pg_catalog",
        "DateStyle": "ISO",
        "standard_conforming_strings": "on",
    }.items()
)
"""For the campaign's own sessions, which must not depend on the settings that the campaign changes."""


@dataclass
class Testbed:
    dsn: str
    """A direct connection to the server, for the campaign itself."""
    lease: float
    folder: Path
    server: EmbeddedServer | None = None
    """None: a server of the user, which the campaign must not stop."""
    workers: WorkerGroup = field(default_factory=lambda: WorkerGroup([]))
    proxies: dict[str, Proxy] = field(default_factory=dict)
    pooler: Pooler | None = None
    disk: SmallDisk | None = None
    web_port: int = field(default_factory=free_port)
    spared: str | None = None
    """The worker that no fault hits at present. If it forgets something, its own death does not repair that, so it shows."""

    async def connect(self) -> AsyncConnection[Any]:
        return await AsyncConnection.connect(
            self.dsn,
            autocommit=True,
            application_name="chaos",
            connect_timeout=5,
            options=SESSION_OPTIONS,
            client_encoding="utf8",
        )

    async def fetch(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        async with await self.connect() as connection:
            cursor = await connection.execute(statement, values or None)
            return await cursor.fetchall() if cursor.description else []

    def pick_worker(self, random: Random) -> CampaignWorker:
        exposed = [worker for worker in self.workers.workers if worker.name != self.spared] or self.workers.workers
        return random.choice([worker for worker in exposed if worker.alive] or exposed)

    def pick_proxy(self, random: Random) -> tuple[str, Proxy]:
        return random.choice(sorted(self.proxies.items()))


@asynccontextmanager
async def open_testbed(options: CampaignOptions, folder: Path) -> AsyncIterator[Testbed]:
    """`folder`: for the ledger and all logs."""
    with _open_server(options, folder) as (dsn, server):
        await migrate(DatabaseTarget.at(dsn))
        testbed = Testbed(dsn=dsn, lease=options.lease, folder=folder, server=server)
        async with AsyncExitStack() as stack:
            with psycopg.connect(dsn, autocommit=True) as connection:
                recorder.install(connection)
                testbed.disk = _mount_disk(testbed, connection, stack)
            for name in ("clients", *PROXIED_WORKERS):
                testbed.proxies[name] = Proxy(dsn)
                await stack.enter_async_context(testbed.proxies[name].open())
            testbed.pooler = _start_pooler(testbed, stack)
            workers = [_worker(testbed, options, number) for number in range(1, options.workers + 1)]
            testbed.workers = WorkerGroup(workers, _web_server(testbed))
            stack.callback(testbed.workers.stop)
            yield testbed


@contextmanager
def _open_server(options: CampaignOptions, folder: Path) -> Iterator[tuple[str, EmbeddedServer | None]]:
    if options.dsn is not None:
        yield options.dsn, None
        return
    small_queue = {"max_notify_queue_pages": str(NOTIFY_PAGES)} if find_binaries().major >= NOTIFY_PAGES_SINCE else {}
    with EmbeddedServer(folder / "server", settings=SERVER_SETTINGS | small_queue) as server:
        yield server.dsn, server


def _mount_disk(testbed: Testbed, connection: psycopg.Connection[tuple[object, ...]], stack: AsyncExitStack) -> SmallDisk | None:
    if testbed.server is None or not SmallDisk.possible():
        return None
    owner = testbed.server.status().data_dir.stat().st_uid
    try:
        disk = SmallDisk(testbed.server.status().data_dir.parent / f"disk-{os.getpid()}", owner)
    except (OSError, ValueError):
        return None
    stack.callback(disk.unmount)
    disk.move_jobs_table(connection)
    return disk


def _start_pooler(testbed: Testbed, stack: AsyncExitStack) -> Pooler | None:
    if PGBOUNCER is None or testbed.server is None:
        return None
    with psycopg.connect(testbed.dsn, autocommit=True) as connection:
        connection.execute(f"create role {POOLED_ROLE} superuser login")
    pooler = Pooler(testbed.dsn, testbed.folder, size=20, user=POOLED_ROLE)
    pooler.start()
    stack.callback(pooler.kill)
    return pooler


def _worker(testbed: Testbed, options: CampaignOptions, number: int) -> CampaignWorker:
    name = f"worker-{number}"
    dsn = testbed.dsn
    environment = worker_environment(testbed.folder, options.lease)
    if name in testbed.proxies:
        dsn = testbed.proxies[name].dsn
    elif number == options.workers and testbed.pooler is not None:
        dsn = testbed.pooler.dsn
        environment["TENURE_POOLED"] = "1"
    return CampaignWorker(name, dsn, testbed.folder, worker_arguments(options), environment)


def worker_arguments(options: CampaignOptions) -> list[str]:
    numbers = ("--processes", str(options.processes), "--concurrency", str(options.concurrency))
    return worker_command(APP, "--queues", "default,side", *numbers)


def _web_server(testbed: Testbed) -> TenureProcess | None:
    """Its connections go through the proxy of the clients. None: what it needs is not installed."""
    if find_spec("starlette") is None or find_spec("uvicorn") is None:
        return None
    environment = worker_environment(testbed.folder, testbed.lease)
    command = ["web", "--app", APP, "--port", str(testbed.web_port)]
    return TenureProcess("web", testbed.proxies["clients"].dsn, testbed.folder, command, environment)
