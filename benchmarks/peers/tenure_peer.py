"""Tenure itself: a `tenure worker` as a user starts it, on a paused queue that is resumed when the measured time begins."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from benchmarks.payload import PAYLOAD
from benchmarks.peers.protocol import Described, await_go, main, print_age
from tenure import Tenure, __version__

CONCURRENCY = 400

app = Tenure()


@app.job
async def noop(user_id: int, template: str, to: str, n: int, pad: str) -> None:
    pass


@app.job
async def stamp(*, user_id: int, template: str, to: str, n: int, pad: str, sent: int) -> None:  # noqa: ARG001 - as long as noop's
    print_age(sent)


class TenureClient:
    async def enqueue_bulk(self, count: int) -> None:
        await app.enqueue_many(noop.call(**PAYLOAD) for _ in range(count))

    async def enqueue_noop(self) -> None:
        await noop.enqueue(**PAYLOAD)

    async def enqueue_stamp(self, sent: int) -> None:
        await stamp.enqueue(**PAYLOAD, sent=sent)


class TenurePeer:
    described = Described(
        version=__version__,
        settings=f"concurrency={CONCURRENCY}",
        left="select id from tenure.jobs order by id desc limit 1",
        succeeded="select count(*) from tenure.history where state = 'completed'",
        own_processes=True,
    )

    async def prepare(self, dsn: str) -> None:
        await _run("migrate", "--dsn", dsn)

    @asynccontextmanager
    async def client(self, dsn: str) -> AsyncIterator[TenureClient]:
        app.configure(dsn=dsn)
        yield TenureClient()
        await app.close()

    async def work(self, dsn: str, processes: int) -> None:
        app.configure(dsn=dsn)
        await app.client().pause("default")
        worker = await _worker(dsn, processes)
        await_go()
        await app.client().resume("default")
        await app.close()
        await worker.wait()


async def _worker(dsn: str, processes: int) -> asyncio.subprocess.Process:
    """Entered when all of its processes take jobs. What handlers print goes to this process's own output."""
    options = ("--app", "benchmarks.peers.tenure_peer:app", "--dsn", dsn, "-p", str(processes), "-c", str(CONCURRENCY))
    worker = await _start("worker", *options, stderr=asyncio.subprocess.PIPE)
    assert worker.stderr is not None
    ready, lines = 0, []
    while ready < processes:
        lines.append(line := (await worker.stderr.readline()).decode())
        if not line:
            raise SystemExit(f"the worker ended:\n{''.join(lines)}")
        ready += "ready: " in line
    asyncio.get_running_loop().create_task(worker.stderr.read())  # else the pipe would fill up
    return worker


async def _run(*command: str) -> None:
    process = await _start(*command, stdout=asyncio.subprocess.DEVNULL)
    if await process.wait():
        raise SystemExit(f"tenure {command[0]} failed")


async def _start(*command: str, **streams: Any) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(sys.executable, "-m", "tenure", *command, **streams)


if __name__ == "__main__":
    main(TenurePeer())
