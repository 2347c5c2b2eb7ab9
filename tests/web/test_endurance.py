"""What a server on the open network meets: kills of everything around it, and thousands of connections."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

from tenure import Tenure
from tenure.embedded import EmbeddedServer
from tests.cli.started import started
from tests.processes import free_port, worker_process
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.slow

APP = """
import asyncio
from itertools import count
from pathlib import Path
from tenure import Context, Tenure

app = Tenure()


@app.job
async def walk(ctx: Context, result: int) -> int:
    for step in count():
        ctx.progress(step % 100)
        await asyncio.sleep(0.1)
        if Path("end").exists():
            return result
"""

SOCKETS, JOBS = 200, 10


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="tenure-web-", ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o711)
        Path(name, "jobs.py").write_text(APP)
        yield Path(name)


@pytest.fixture
def server(folder: Path) -> Iterator[EmbeddedServer]:
    """A PostgreSQL that may be killed."""
    with EmbeddedServer(folder / "server") as server:
        yield server


async def watch(port: int, topics: list[str], seen: dict[str, dict[str, Any]], connected: set[int]) -> None:
    """Follows jobs until all are over, as a page does: reconnects, and subscribes again with the versions that it has."""
    while len(seen) < len(topics) or not all(message["job"]["over"] for message in seen.values()):
        with suppress(OSError, WebSocketException):
            async with connect(f"ws://127.0.0.1:{port}/_api/live", proxy=None, open_timeout=30) as socket:
                versions = {topic: message["version"] for topic, message in seen.items()}
                await socket.send(json.dumps({"type": "subscribe", "topics": topics, "versions": versions}))
                while not (len(seen) == len(topics) and all(message["job"]["over"] for message in seen.values())):
                    message = json.loads(await asyncio.wait_for(socket.recv(), 60))
                    connected.add(id(seen))
                    if message["type"] == "job":
                        seen[message["topic"]] = message
        connected.discard(id(seen))
        await asyncio.sleep(0.1)


async def test_every_viewer_ends_with_the_true_state_after_kills_of_web_workers_and_postgres(folder, server):
    port, dsn = free_port(), server.dsn
    app = Tenure(dsn)
    await app.migrate()
    words = ("web", "--port", str(port))
    with worker_process(folder, dsn, "--concurrency", "20") as workers:
        await until(lambda: "ready: " in workers.said, within=60)
        with started(folder, *words, TENURE_DSN=dsn) as first:
            assert first.says("/_api"), first.said
            handles = [await app.enqueue("walk", {"result": 80}) for _ in range(JOBS)]
            topics = [f"job:{handle.id}" for handle in handles]
            seen: list[dict[str, dict[str, Any]]] = [{} for _ in range(SOCKETS)]
            connected: set[int] = set()
            watching = [asyncio.create_task(watch(port, topics, one, connected)) for one in seen]
            await until(lambda: all(len(one) == JOBS for one in seen), within=60)
            assert len(connected) == SOCKETS
            os.kill(workers.children()[0], signal.SIGKILL)
            first.signal(signal.SIGKILL)
            await until(lambda: not connected)
        with started(folder, *words, TENURE_DSN=dsn) as second:
            await until(lambda: second.read() and len(connected) == SOCKETS, within=60)
            os.kill(server.status().pid, signal.SIGKILL)
            await until(lambda: not server.running)
            server.start()
            (folder / "end").touch()
            await until(lambda: second.read() and all(one.done() for one in watching), within=180)
            await asyncio.gather(*watching)
    with psycopg.connect(dsn) as connection:
        ended = connection.execute("select id::text, state, output from tenure.history").fetchall()
    truth = {f"job:{job_id}": (state, output) for job_id, state, output in ended}
    assert truth == dict.fromkeys(topics, ("completed", 80))
    for one in seen:
        assert {topic: (message["job"]["status"], message["job"]["output"]) for topic, message in one.items()} == truth
    await app.close()


CONNECTS, AT_ONCE = 10_000, 250
UPGRADE = (
    b"GET /_api/live HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
)
VISITS = (
    b"",
    b"GET /_api/jobs HTTP/1.1\r\nHost: localh",
    b"GET /_api/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
    UPGRADE + b"\r\n",
    UPGRADE + b"\r\n" + b"\xff" * 40,
    UPGRADE + b"Origin: https://evil.example\r\n\r\n",
    b"POST /_api/jobs/walk/dispatch HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n{",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 20,
)


async def visit(port: int, number: int) -> None:
    """Connects, says something, and leaves without a word."""
    with suppress(OSError):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(VISITS[number % len(VISITS)])
        if number % 3:
            with suppress(TimeoutError):
                await asyncio.wait_for(reader.read(200), 0.2)
        writer.transport.abort()


async def test_ten_thousand_connects_leave_nothing_behind(folder, server):
    port, dsn = free_port(), server.dsn
    app = Tenure(dsn)
    await app.migrate()
    with started(folder, "web", "--port", str(port), TENURE_DSN=dsn) as web:
        assert web.says("/_api"), web.said
        pid = web._process.pid
        await asyncio.gather(*[visit(port, number) for number in range(AT_ONCE)])
        async with httpx2.AsyncClient(
            base_url=f"http://127.0.0.1:{port}/_api", trust_env=False, verify=False, timeout=2 * PATIENCE
        ) as client:
            before, memory = files_of(pid), memory_of(pid)
            async with connect(f"ws://127.0.0.1:{port}/_api/live", proxy=None, ping_interval=None) as viewer:
                await viewer.send(json.dumps({"type": "subscribe", "topics": ["overview"]}))
                for begin in range(0, CONNECTS, AT_ONCE):
                    await asyncio.gather(*[visit(port, begin + number) for number in range(AT_ONCE)])
                    web.read()
                    assert (await client.get("/healthz")).status_code == 200
                await viewer.send(json.dumps({"type": "ping"}))
                await asyncio.wait_for(viewer.recv(), 30)
            await until(lambda: files_of(pid) <= before + 5, within=60)
            assert (await client.get("/readyz")).status_code == 200
        assert memory_of(pid) - memory < 50
    await app.close()


def files_of(pid: int) -> int:
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())


def memory_of(pid: int) -> float:
    """Megabytes."""
    [line] = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS")]
    return int(line.split()[1]) / 1024
