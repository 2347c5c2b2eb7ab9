"""PgQueuer: claims and completes in batches; payloads are bytes; no fencing, no results."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from importlib.metadata import version
from typing import Any

import asyncpg
from pgqueuer import PgQueuer, Queries

from benchmarks.payload import PAYLOAD
from benchmarks.peers.protocol import Described, await_go, main, print_age

BATCH = 1_000
BULK = 10_000


class PgQueuerClient:
    def __init__(self, queries: Any) -> None:
        self._queries = queries

    async def enqueue_bulk(self, count: int) -> None:
        for first in range(0, count, BULK):
            many = min(BULK, count - first)
            await self._queries.enqueue(["noop"] * many, [_packed(PAYLOAD) for _ in range(many)], [0] * many)

    async def enqueue_noop(self) -> None:
        await self._queries.enqueue("noop", _packed(PAYLOAD))

    async def enqueue_stamp(self, sent: int) -> None:
        await self._queries.enqueue("stamp", _packed(PAYLOAD | {"sent": sent}))


class PgQueuerPeer:
    described = Described(
        version=version("pgqueuer"),
        settings=f"asyncpg, batch_size={BATCH}, statistics on demand",
        left="select id from pgqueuer order by id desc limit 1",
        succeeded="select count(*) from pgqueuer_log where status = 'successful'",
        own_processes=False,
    )

    async def prepare(self, dsn: str) -> None:
        connection = await asyncpg.connect(dsn)
        await Queries.from_asyncpg_connection(connection).install()
        await connection.close()

    @asynccontextmanager
    async def client(self, dsn: str) -> AsyncIterator[PgQueuerClient]:
        connection = await asyncpg.connect(dsn)
        yield PgQueuerClient(Queries.from_asyncpg_connection(connection))
        await connection.close()

    async def work(self, dsn: str, processes: int) -> None:  # noqa: ARG002 - one process each
        worker = PgQueuer.from_asyncpg_connection(await asyncpg.connect(dsn))

        @worker.entrypoint("noop")
        async def noop(job: Any) -> None:
            json.loads(job.payload)

        @worker.entrypoint("stamp")
        async def stamp(job: Any) -> None:
            print_age(json.loads(job.payload)["sent"])

        await_go()
        await worker.run(batch_size=BATCH, log_aggregation_interval=timedelta(0))


def _packed(given: dict[str, Any]) -> bytes:
    return json.dumps(given).encode()


if __name__ == "__main__":
    main(PgQueuerPeer())
