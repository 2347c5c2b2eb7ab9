"""(m) What limits cost: kinds without a limit, in an app that has some, and kinds with one."""

from __future__ import annotations

from itertools import cycle, islice
from uuid import UUID

from benchmarks import drain
from benchmarks.drain import Drain, enqueue_all
from benchmarks.jobs import PAYLOAD
from benchmarks.server import Server
from benchmarks.workers import Worker
from tenure import Limit, Tenure

KEYS = [str(number) for number in range(50)]

app = Tenure()


@app.job
async def noop(user_id: int, template: str, to: str, n: int, pad: str) -> None:
    """The same as in the drain of an app without limits."""


@app.job(concurrency=Limit(1000))
async def limited(user_id: int, template: str, to: str, n: int, pad: str) -> None:
    """More than there are slots: this measures the cost of claiming under a limit, not the waiting for it."""


@app.job(fair_by="to")
async def fair(user_id: int, template: str, to: str, n: int, pad: str) -> None:
    pass


def measure(server: Server, count: int, concurrency: int) -> dict[str, Drain]:
    with server.database() as dsn, Worker(dsn, app="benchmarks.limited:app", concurrency=concurrency) as worker:
        return {
            "beside_limits": drain.measure(server, dsn, worker, count, _enqueue_jobs),
            "limited": drain.measure(server, dsn, worker, count // 5, _enqueue_limited),
            "fair": drain.measure(server, dsn, worker, count // 5, _enqueue_fair),
        }


async def _enqueue_jobs(dsn: str, count: int) -> list[UUID]:
    app.configure(dsn=dsn)
    return await enqueue_all(app, (noop.call(**PAYLOAD) for _ in range(count)))


async def _enqueue_limited(dsn: str, count: int) -> list[UUID]:
    app.configure(dsn=dsn)
    return await enqueue_all(app, (limited.call(**PAYLOAD) for _ in range(count)))


async def _enqueue_fair(dsn: str, count: int) -> list[UUID]:
    app.configure(dsn=dsn)
    return await enqueue_all(app, (fair.call(**PAYLOAD | {"to": key}) for key in islice(cycle(KEYS), count)))
