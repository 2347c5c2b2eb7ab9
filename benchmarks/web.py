"""(t) Dispatch beside a bare Starlette app that inserts one row. (u) A thousand live sockets, and progress of a real worker.

On a shared machine, the CPU time of the server is the steadiest number.
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

from benchmarks.server import Server
from tenure import Tenure
from tenure.web import create_token

UPDATES_PER_SECOND = 100
DISPATCHING, CONNECTIONS = 5.0, 32  # seconds; kept alive
WALKING, WARM_UP = 20, 3.0  # jobs; seconds until their workers know that they are watched
BARE_PORT, WEB_PORT = 8471, 8472

JOBS = """
from tenure import Tenure
app = Tenure()

@app.job
async def export_users(format: str) -> str:
    return format
"""

WALKS = """
import asyncio, random, time
from tenure import Context, Tenure
app = Tenure()

@app.job
async def walk(ctx: Context, seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        await asyncio.sleep(random.expovariate(2.0))
        ctx.progress(50, str(time.time()))
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


def measure_dispatch(server: Server) -> dict[str, float]:
    """Requests per second of either, and microseconds of CPU for each of ours."""
    with server.database() as dsn, tempfile.TemporaryDirectory(prefix="tenure-bench-") as name:
        return asyncio.run(_dispatch(Path(name), dsn))


async def _dispatch(folder: Path, dsn: str) -> dict[str, float]:
    (folder / "jobs.py").write_text(JOBS)
    (folder / "bare.py").write_text(BARE)
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection:
        await connection.execute("create table bare (id uuid primary key, args jsonb)")
    [token] = await _tokens(dsn, 1)
    commands = {
        "web_dispatch_bare": (["bare.py", dsn, str(BARE_PORT)], BARE_PORT),
        "web_dispatch": (["-m", "tenure", "web", "--app", "jobs:app", "--dsn", dsn, "--port", str(WEB_PORT)], WEB_PORT),
    }
    found: dict[str, float] = {}
    for key, (command, port) in commands.items():
        with running(command, folder) as process:
            await listening(port)
            await requests(port, token, 1, 4)
            before = cpu_seconds(process.pid)
            count = len(await requests(port, token, DISPATCHING, CONNECTIONS))
            found[key] = count / DISPATCHING
            found["web_dispatch_cpu"] = (cpu_seconds(process.pid) - before) / count * 1e6  # of the last one
    return found


def measure_live(server: Server, sockets: int, seconds: float) -> dict[str, float]:
    """Milliseconds from an update to its socket, and the share of a core that the server used."""
    with server.database() as dsn, tempfile.TemporaryDirectory(prefix="tenure-bench-") as name:
        return asyncio.run(_live(Path(name), dsn, sockets, seconds))


async def _live(folder: Path, dsn: str, sockets: int, seconds: float) -> dict[str, float]:
    tokens = await _tokens(dsn, -(-sockets // 100))  # a token may have 100 connections
    with running(["-m", "tenure", "web", "--dsn", dsn, "--port", str(WEB_PORT)], folder) as process:
        await listening(WEB_PORT)
        async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection:
            ids = [row[0] for row in await (await connection.execute(ENQUEUE.encode(), [sockets])).fetchall()]
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

            tasks = [asyncio.create_task(watch(job_id, token)) for job_id, token in zip(ids, cycle(tokens), strict=False)]
            for _ in ids:
                await ready.acquire()
            before, begin, percent = cpu_seconds(process.pid), time.monotonic(), dict[str, int]()
            for number in range(int(UPDATES_PER_SECOND * seconds)):
                job_id = random.choice(ids)
                percent[job_id] = percent.get(job_id, 0) + 1
                sent[job_id, percent[job_id]] = time.monotonic()
                await connection.execute(UPDATE.encode(), [job_id, percent[job_id], job_id])
                await asyncio.sleep(max(0.0, begin + number / UPDATES_PER_SECOND - time.monotonic()))
            used = (cpu_seconds(process.pid) - before) / (time.monotonic() - begin)
            await asyncio.sleep(2)
            latencies.sort()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
    # An update that a newer one replaced before it was sent does not arrive, and is not counted.
    return {"web_live_p95": latencies[int(len(latencies) * 0.95)] * 1000, "web_live_cpu": used * 100}


def measure_progress(server: Server, seconds: float) -> float:
    """Milliseconds from the call in a handler to the socket that follows its job, p95."""
    with server.database() as dsn, tempfile.TemporaryDirectory(prefix="tenure-bench-") as name:
        return asyncio.run(_progress(Path(name), dsn, seconds))


async def _progress(folder: Path, dsn: str, seconds: float) -> float:
    (folder / "jobs.py").write_text(WALKS)
    [token] = await _tokens(dsn, 1)
    web = ["-m", "tenure", "web", "--dsn", dsn, "--port", str(WEB_PORT)]
    worker = ["-m", "tenure", "worker", "--app", "jobs:app", "--dsn", dsn, "--processes", "1", "--concurrency", str(WALKING)]
    latencies = list[float]()

    async def watch(job_id: str) -> None:
        """Until the job is over. The handler is on this machine, so its clock is ours."""
        headers, seen = {"Authorization": f"Bearer {token}"}, str(time.time() + WARM_UP)
        async with connect(f"ws://127.0.0.1:{WEB_PORT}/_api/live", proxy=None, additional_headers=headers) as socket:
            await socket.send(json.dumps({"type": "subscribe", "topics": [f"job:{job_id}"]}))
            async for text in socket:
                job = json.loads(text).get("job")
                if job is not None and float(job["progress_message"] or 0) > float(seen):
                    seen = job["progress_message"]
                    latencies.append(time.time() - float(seen))
                if job is not None and job["over"]:
                    return

    with running(web, folder), running(worker, folder):
        await listening(WEB_PORT)
        app = Tenure(dsn)
        handles = [await app.enqueue("walk", {"seconds": WARM_UP + seconds}) for _ in range(WALKING)]
        await asyncio.gather(*[watch(str(handle.id)) for handle in handles])
        await app.close()
    latencies.sort()
    return latencies[int(len(latencies) * 0.95)] * 1000


async def _tokens(dsn: str, count: int) -> list[str]:
    app = Tenure(dsn)
    made = [(await create_token(app, f"bench-{number}", "operate", rate=0)).token for number in range(count)]
    await app.close()
    return made


ENQUEUE = """select id::text
  from tenure.enqueue((select json_agg(json_build_object('kind', 'x'))::text from generate_series(1, %s)))"""

UPDATE = """with written as (
    insert into tenure.progress (job_id, fence, percent) values (%s, 1, %s)
    on conflict (job_id) do update set percent = excluded.percent)
select pg_notify('tenure', 'progress ' || %s)"""
