"""The web server: `python -m benchmarks.web`. Dispatch beside a bare Starlette app that inserts one row, and 1,000 live sockets.

Prints rates, latencies and the CPU time of the server: on a shared machine, the last is the steadiest number.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path

import psycopg
from websockets.asyncio.client import connect

from tenure import Tenure
from tenure.embedded import EmbeddedServer
from tenure.store.migrator import migrate
from tenure.store.target import DatabaseTarget
from tenure.web import create_token

SOCKETS, UPDATES_PER_SECOND, SECONDS = 1000, 100, 20
BARE_PORT, WEB_PORT = 8471, 8472

JOBS = """
from tenure import Tenure
app = Tenure()

@app.job
async def export_users(format: str) -> str:
    return format
"""

BARE = """
import json, sys, uvicorn
from uuid import uuid4
from psycopg_pool import AsyncConnectionPool
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

pool = AsyncConnectionPool(sys.argv[1], min_size=4, max_size=4, open=False, kwargs={"autocommit": True})

async def dispatch(request):
    await pool.open()
    body, job_id = await request.json(), str(uuid4())
    async with pool.connection() as connection:
        await connection.execute("insert into bare (id, args) values (%s, %s)", [job_id, json.dumps(body["args"])])
    return JSONResponse({"id": job_id}, 202)

routes = [Route("/_api/jobs/{kind}/dispatch", dispatch, methods=["POST"])]
uvicorn.run(Starlette(routes=routes), port=int(sys.argv[2]), log_level="error", access_log=False)
"""


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def running(command: list[str], folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, *command], cwd=folder)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


async def listening(port: int) -> None:
    for _ in range(400):
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.05)
        else:
            writer.close()
            return


async def requests(port: int, token: str, seconds: float, connections: int) -> list[float]:
    """Dispatches over connections that are kept alive. Returns the latencies."""
    body = b'{"args": {"format": "csv"}}'
    head = f"POST /_api/jobs/export_users/dispatch HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
    request = f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
    end, latencies = time.monotonic() + seconds, list[float]()

    async def send() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while time.monotonic() < end:
            began = time.monotonic()
            writer.write(request)
            answer = (await reader.readuntil(b"\r\n\r\n")).lower()
            assert b" 202 " in answer[:20], answer
            await reader.readexactly(int(answer.split(b"content-length:")[1].split(b"\r\n")[0]))
            latencies.append(time.monotonic() - began)
        writer.close()

    await asyncio.gather(*[send() for _ in range(connections)])
    return sorted(latencies)


async def dispatch(folder: Path, dsn: str, token: str) -> None:
    commands = {
        "bare insert": (["bare.py", dsn, str(BARE_PORT)], BARE_PORT),
        "tenure web": (["-m", "tenure", "web", "--app", "jobs:app", "--dsn", dsn, "--port", str(WEB_PORT)], WEB_PORT),
    }
    for _ in range(2):
        for name, (command, port) in commands.items():
            with running(command, folder) as process:
                await listening(port)
                await requests(port, token, 1, 4)
                before = cpu_seconds(process.pid)
                latencies = await requests(port, token, 5, 32)
                used, count = cpu_seconds(process.pid) - before, len(latencies)
                print(
                    f"{name:12} {count / 5:6.0f} requests/s, p95 {latencies[int(count * 0.95)] * 1000:5.1f} ms, "
                    f"{used / count * 1e6:4.0f} us of CPU each"
                )


async def sockets(folder: Path, dsn: str, tokens: list[str]) -> None:
    """A token may have 100 connections."""
    with running(["-m", "tenure", "web", "--dsn", dsn, "--port", str(WEB_PORT)], folder) as process:
        await listening(WEB_PORT)
        async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection:
            ids = [row[0] for row in await (await connection.execute(ENQUEUE.encode(), [SOCKETS])).fetchall()]
            sent, latencies, ready = dict[tuple[str, int], float](), list[float](), asyncio.Semaphore(0)

            async def watch(job_id: str, token: str) -> None:
                headers = {"Authorization": f"Bearer {token}"}
                address = f"ws://127.0.0.1:{WEB_PORT}/_api/live"
                async with connect(
                    address, proxy=None, open_timeout=120, ping_interval=None, additional_headers=headers
                ) as socket:
                    await socket.send(json.dumps({"type": "subscribe", "topics": [f"job:{job_id}"]}))
                    async for text in socket:
                        message = json.loads(text)
                        if message["type"] == "ready":
                            continue
                        if message["job"]["progress_percent"] == 0:
                            ready.release()
                        elif (began := sent.pop((job_id, message["job"]["progress_percent"]), None)) is not None:
                            latencies.append(time.monotonic() - began)

            began = time.monotonic()
            tasks = [asyncio.create_task(watch(job_id, token)) for job_id, token in zip(ids, cycle(tokens), strict=False)]
            for _ in ids:
                await ready.acquire()
            print(f"{SOCKETS} sockets connected and subscribed in {time.monotonic() - began:.1f} s")
            before, begin, percent = cpu_seconds(process.pid), time.monotonic(), dict[str, int]()
            for number in range(UPDATES_PER_SECOND * SECONDS):
                job_id = random.choice(ids)
                percent[job_id] = percent.get(job_id, 0) + 1
                sent[job_id, percent[job_id]] = time.monotonic()
                await connection.execute(UPDATE.encode(), [job_id, percent[job_id], job_id])
                await asyncio.sleep(max(0.0, begin + number / UPDATES_PER_SECOND - time.monotonic()))
            used = cpu_seconds(process.pid) - before
            await asyncio.sleep(2)
            latencies.sort()
            print(
                f"{len(latencies)} of {UPDATES_PER_SECOND * SECONDS} updates received (others were replaced by newer ones), "
                f"p95 {latencies[int(len(latencies) * 0.95)] * 1000:.0f} ms, {used / SECONDS * 100:.0f} % of a core"
            )
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


ENQUEUE = """select id::text
  from tenure.enqueue((select json_agg(json_build_object('kind', 'x'))::text from generate_series(1, %s)))"""

UPDATE = """with written as (
    insert into tenure.progress (job_id, fence, percent) values (%s, 1, %s)
    on conflict (job_id) do update set percent = excluded.percent)
select pg_notify('tenure', 'progress ' || %s)"""


async def main(folder: Path, dsn: str) -> None:
    await migrate(DatabaseTarget.at(dsn))
    (folder / "jobs.py").write_text(JOBS)
    (folder / "bare.py").write_text(BARE)
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection:
        await connection.execute("create table bare (id uuid primary key, args jsonb)")
    app = Tenure(dsn)
    tokens = [(await create_token(app, f"bench-{number}", "operate", rate=0)).token for number in range(SOCKETS // 100)]
    await app.close()
    await dispatch(folder, dsn, tokens[0])
    await sockets(folder, dsn, tokens)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="tenure-bench-") as name:
        Path(name).chmod(0o711)
        with EmbeddedServer(Path(name) / "server") as server:
            asyncio.run(main(Path(name), server.dsn))
