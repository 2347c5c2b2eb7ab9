"""What a hand-written queue on asyncpg does: claim with SKIP LOCKED, run, delete. No lease, no retry, no result."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

import asyncpg

from benchmarks.payload import PAYLOAD
from benchmarks.peers.protocol import Described, await_go, main, print_age

BATCH = 500
BULK = 10_000
INPUT = json.dumps(PAYLOAD)

CREATE = """
    create table bare_jobs (
        id bigint generated always as identity primary key, state smallint not null default 0, payload text not null);
    create index on bare_jobs (id) where state = 0"""
CLAIM = """
    update bare_jobs set state = 1
     where id = any(array(select id from bare_jobs where state = 0 order by id limit $1 for update skip locked))
    returning id, payload"""
DELETE = "delete from bare_jobs where id = any($1::bigint[])"
INSERT = "insert into bare_jobs (payload) values ($1)"
INSERT_MANY = "insert into bare_jobs (payload) select unnest($1::text[])"
INSERT_AND_NOTIFY = f"with added as ({INSERT} returning id) select pg_notify('bare', '') from added"


class BareClient:
    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def enqueue_bulk(self, count: int) -> None:
        for first in range(0, count, BULK):
            await self._connection.execute(INSERT_MANY, [json.dumps(PAYLOAD) for _ in range(min(BULK, count - first))])

    async def enqueue_noop(self) -> None:
        await self._connection.execute(INSERT, json.dumps(PAYLOAD))

    async def enqueue_stamp(self, sent: int) -> None:
        await self._connection.execute(INSERT_AND_NOTIFY, json.dumps(PAYLOAD | {"sent": sent}))


class BareLoop:
    described = Described(
        version=f"asyncpg {version('asyncpg')}",
        settings=f"batches of {BATCH}",
        left="select id from bare_jobs order by id desc limit 1",
        succeeded=None,
        own_processes=False,
    )

    async def prepare(self, dsn: str) -> None:
        connection = await asyncpg.connect(dsn)
        await connection.execute(CREATE)
        await connection.close()

    @asynccontextmanager
    async def client(self, dsn: str) -> AsyncIterator[BareClient]:
        connection = await asyncpg.connect(dsn)
        yield BareClient(connection)
        await connection.close()

    async def work(self, dsn: str, processes: int) -> None:
        connection, awake = await asyncpg.connect(dsn), asyncio.Event()
        await connection.add_listener("bare", lambda *_: awake.set())
        claim, delete = await connection.prepare(CLAIM), await connection.prepare(DELETE)
        await_go()
        while processes:
            awake.clear()
            while rows := await claim.fetch(BATCH):
                await asyncio.gather(*(_handle(json.loads(row[1])) for row in rows))
                await delete.fetch([row[0] for row in rows])
            await awake.wait()


async def _handle(given: dict[str, Any]) -> None:
    if "sent" in given:
        print_age(given["sent"])


if __name__ == "__main__":
    main(BareLoop())
