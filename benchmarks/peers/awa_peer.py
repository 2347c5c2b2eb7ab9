"""awa: claims and completes in Rust, calls handlers in Python."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import awa

from benchmarks.payload import PAYLOAD
from benchmarks.peers.protocol import Described, await_go, main, print_age

SLOTS = 400

COMPLETED = """
    (select coalesce(sum(completed_count), 0) from awa.receipt_completion_batches)
    + (select coalesce(sum(pruned_completed_count), 0) from awa.queue_terminal_rollups)"""
"""What was completed lately, and what has been summed up and truncated since."""


@dataclass
class Noop:
    user_id: int
    template: str
    to: str
    n: int
    pad: str


@dataclass
class Stamp(Noop):
    sent: int


class AwaClient:
    def __init__(self, client: Any) -> None:
        self._client = client

    async def enqueue_bulk(self, count: int) -> None:
        await self._client.enqueue_many_copy([Noop(**PAYLOAD) for _ in range(count)])

    async def enqueue_noop(self) -> None:
        await self._client.insert(Noop(**PAYLOAD))

    async def enqueue_stamp(self, sent: int) -> None:
        await self._client.insert(Stamp(**PAYLOAD, sent=sent))


class AwaPeer:
    described = Described(
        version=version("awa-pg"),
        settings=f"{SLOTS} slots",
        left=f"select 1 where {COMPLETED} < %(jobs)s",
        succeeded=f"select {COMPLETED}",
        own_processes=False,
    )

    async def prepare(self, dsn: str) -> None:
        async with awa.AsyncClient(_with_host(dsn)) as client:
            await client.migrate()
            await client.install_queue_storage()

    @asynccontextmanager
    async def client(self, dsn: str) -> AsyncIterator[AwaClient]:
        async with awa.AsyncClient(_with_host(dsn)) as client:
            yield AwaClient(client)

    async def work(self, dsn: str, processes: int) -> None:  # noqa: ARG002 - one process each
        client = awa.AsyncClient(_with_host(dsn))

        @client.task(Noop, queue="default")
        async def noop(job: Any) -> None:
            pass

        @client.task(Stamp, queue="default")
        async def stamp(job: Any) -> None:
            print_age(job.args.sent)

        await_go()
        await client.start([{"name": "default", "max_workers": SLOTS}])
        await asyncio.Event().wait()


def _with_host(dsn: str) -> str:
    """awa reads no URL without a host, even if a parameter names a folder of sockets, which counts."""
    return dsn.replace("@/", "@localhost/")


if __name__ == "__main__":
    main(AwaPeer())
