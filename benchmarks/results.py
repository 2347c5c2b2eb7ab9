"""(k) How long a caller still waits after the job is done: from the handler's last line to the return of `result()`.

One job after the other; a worker at its defaults runs them in another process. Some are done before the caller begins to
wait, most of them later.
"""

from __future__ import annotations

import asyncio
import random
import time

from benchmarks.server import Server
from benchmarks.workers import Worker
from tenure import Tenure

LONGEST = 0.08  # seconds that a job takes; a caller who hears nothing looks again after more
WARMUP = 10  # first ones that open connections and are not counted

app = Tenure()


@app.job
async def nap(seconds: float) -> int:
    await asyncio.sleep(seconds)
    return time.time_ns()


def measure(server: Server, count: int) -> list[float]:
    """Milliseconds, of each job."""
    with server.database() as dsn, Worker(dsn, app="benchmarks.results:app"):
        return asyncio.run(_call_in_turn(dsn, WARMUP + count))[WARMUP:]


async def _call_in_turn(dsn: str, count: int) -> list[float]:
    app.configure(dsn=dsn)
    ages = []
    for _ in range(count):
        handle = await nap.enqueue(random.uniform(0, LONGEST))
        ended = await handle.result()
        ages.append((time.time_ns() - ended) / 1e6)
    await app.close()
    return ages
