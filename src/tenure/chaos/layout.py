"""Lays out the field of a campaign: a server, wires, a pooler, a small disk, workers; and clears it away again."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import psycopg

from tenure.chaos import recorder
from tenure.chaos.disk import Disk
from tenure.chaos.faults.notifications import PAGES, SINCE
from tenure.chaos.field import Field
from tenure.chaos.fleet import Fleet, Worker, settings_of
from tenure.chaos.order import Order
from tenure.chaos.pooler import PGBOUNCER, Pooler
from tenure.chaos.wire import Wire
from tenure.embedded import EmbeddedServer, find_binaries
from tenure.store.migrator import migrate
from tenure.store.target import DatabaseTarget

SERVER = {"max_connections": "400", "max_wal_size": "2GB"}
SMALL_QUEUE = {"max_notify_queue_pages": str(PAGES)}
WIRED = ("worker-1", "worker-2")
APP = "tenure.chaos.scheduled:app"
POOLED = "chaos_pooled"
"""The role of the worker behind the pooler: there, settings of the role cannot be overridden, so it has none."""


@asynccontextmanager
async def laid_out(order: Order, folder: Path) -> AsyncIterator[Field]:
    """`folder`: for the ledger and all logs."""
    with _served(order, folder) as (dsn, server):
        await migrate(DatabaseTarget.at(dsn))
        battlefield = Field(dsn=dsn, lease=order.lease, folder=folder, server=server)
        async with AsyncExitStack() as stack:
            with psycopg.connect(dsn, autocommit=True) as connection:
                recorder.install(connection)
                battlefield.disk = _small_disk(battlefield, connection, stack)
            for name in ("clients", *WIRED):
                battlefield.wires[name] = Wire(dsn)
                await stack.enter_async_context(battlefield.wires[name].open())
            battlefield.pooler = _pooler(battlefield, stack)
            battlefield.fleet = Fleet([_worker(battlefield, order, place) for place in range(1, order.workers + 1)])
            stack.callback(battlefield.fleet.stop)
            yield battlefield


@contextmanager
def _served(order: Order, folder: Path) -> Iterator[tuple[str, EmbeddedServer | None]]:
    if order.dsn is not None:
        yield order.dsn, None
        return
    small = SMALL_QUEUE if find_binaries().major >= SINCE else {}
    with EmbeddedServer(folder / "server", settings=SERVER | small) as server:
        yield server.dsn, server


def _small_disk(battlefield: Field, connection: psycopg.Connection[tuple[object, ...]], stack: AsyncExitStack) -> Disk | None:
    if battlefield.server is None or not Disk.possible():
        return None
    owner = battlefield.server.status().data_dir.stat().st_uid
    try:
        disk = Disk(battlefield.server.status().data_dir.parent / f"disk-{os.getpid()}", owner)
    except (OSError, ValueError):
        return None
    stack.callback(disk.remove)
    disk.move_in(connection)
    return disk


def _pooler(battlefield: Field, stack: AsyncExitStack) -> Pooler | None:
    if PGBOUNCER is None or battlefield.server is None:
        return None
    with psycopg.connect(battlefield.dsn, autocommit=True) as connection:
        connection.execute(f"create role {POOLED} superuser login")
    pooler = Pooler(battlefield.dsn, battlefield.folder, size=20, user=POOLED)
    pooler.start()
    stack.callback(pooler.kill)
    return pooler


def _worker(battlefield: Field, order: Order, place: int) -> Worker:
    name = f"worker-{place}"
    route, dsn = "direct", battlefield.dsn
    environment = settings_of(battlefield.folder, order.lease)
    if name in battlefield.wires:
        route, dsn = "wire", battlefield.wires[name].dsn
    elif place == order.workers and battlefield.pooler is not None:
        route, dsn = "PgBouncer", battlefield.pooler.dsn
        environment["TENURE_POOLED"] = "1"
    options = ["--queues", "default,side", "--processes", str(order.processes), "--concurrency", str(order.concurrency)]
    return Worker(name, route, dsn, battlefield.folder, options, environment, APP)
