"""`tenure web` and `tenure tokens`, as a user starts them."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
from pathlib import Path

import httpx2
import pytest
import uvicorn
from websockets.asyncio.client import connect

from tenure.web import server
from tenure.web.http_protocol import HttpProtocol
from tests.cli.conftest import CommandLine
from tests.cli.started import started
from tests.processes import worker_process
from tests.waiting import until
from tests.web.test_jobs import send

CURL = """curl -s -X POST {url}/_api/jobs/export_users/dispatch \\
  -H "Content-Type: application/json" \\
  -d '{{"args": {{"format": "csv"}}}}'"""

APP = """
from tenure import Context, Tenure
app = Tenure()

@app.job
async def export_users(ctx: Context, format: str) -> str:
    ctx.progress(100, "done")
    return format

@app.job
async def sleep(ctx: Context, seconds: float) -> str:
    import asyncio
    await asyncio.sleep(seconds)
    return "slept"
"""


@pytest.fixture
def line(dsn):
    return CommandLine(dsn)


def url_of(process) -> str:
    assert process.says("/_api"), process.said
    return next(word for word in process.said.split() if word.startswith("http://")).removesuffix("/_api")


def test_tokens_are_created_listed_and_revoked(line):
    made = line.json(
        "tokens",
        "create",
        "ci",
        "--scope",
        "operate",
        "--kind",
        "export_users",
        "--queue",
        "a",
        "--queue",
        "b",
        "--expires-in",
        "90d",
    )
    assert made["token"].startswith("tnr_")
    [listed] = line.json("tokens", "list")["tokens"]
    assert (listed["name"], listed["scope"], listed["queues"], listed["kinds"], listed["active"]) == (
        "ci",
        "operate",
        ["a", "b"],
        ["export_users"],
        True,
    )
    assert made["token"] not in line("tokens", "list").stdout
    assert "queue a, queue b, kind export_users" in line("tokens", "list").stdout
    assert line("tokens", "revoke", "ci").exit_code == 0
    assert line("tokens", "revoke", "ci").exit_code == 1
    assert line.json("tokens", "list")["tokens"] == []
    assert line.json("tokens", "list", "--all")["tokens"][0]["active"] is False
    assert line("tokens", "create", "x", "--scope", "root").exit_code == 2
    assert line("tokens", "create", "x", "--expires-in", "soon").exit_code == 2
    assert line("tokens", "create", "printed").stdout.startswith("tnr_")


def test_tokens_that_the_command_line_creates_and_revokes_are_in_the_audit_log(line, sql):
    limits = ["--queue", "a", "--kind", "export_users"]
    first = line.json("tokens", "create", "ci", "--scope", "operate", *limits, "--by", "ann")
    second = line.json("tokens", "create", "ci", "--by", "ann")
    line("tokens", "revoke", "ci", "--by", "bob")
    line("tokens", "revoke", "ci", "--by", "bob")  # none is in force any more
    entries = sql("select actor, source, action, subject, after, status from tenure.audit order by id")
    created = {"id": first["id"], "scope": "operate", "queues": ["a"], "kinds": ["export_users"]}
    assert entries[:2] == [
        ("ann", "cli", "create_token", "ci", created, 200),
        ("ann", "cli", "create_token", "ci", {"id": second["id"], "scope": "read"}, 200),
    ]
    assert [entry[:4] for entry in entries[2:]] == [("bob", "cli", "revoke_token", "ci")] * 2
    assert {entry[4]["id"] for entry in entries[2:]} == {first["id"], second["id"]}


def test_other_addresses_than_loopback_need_a_token(line):
    refused = line("web", "--host", "0.0.0.0", "--port", "0")
    assert refused.exit_code == 2
    assert "tenure tokens create" in refused.output


def test_the_seeds_curl_works_on_a_fresh_machine_and_the_server_stops_on_a_signal(dsn, tmp_path):
    (tmp_path / "app.py").write_text(APP)
    with started(tmp_path, "web", "--port", "0", "--app", "app:app", TENURE_DSN=dsn) as process:
        url = url_of(process)
        answer = json.loads(subprocess.check_output(CURL.format(url=url), shell=True))
        assert (answer["job"]["status"], answer["job"]["enqueued_by"]) == ("pending", "local")
        process.signal(signal.SIGTERM)
        assert process.ends() in (0, -signal.SIGTERM, 128 + signal.SIGTERM)


async def is_published(web, kind) -> bool:
    return (await web.get(f"/kinds/{kind}")).status_code == 200


@pytest.mark.slow
async def test_viewers_of_a_killed_server_see_the_end_at_another_one(dsn, tmp_path, app):
    """Kill -9 of the web process and of the workers, while sockets watch."""
    (tmp_path / "jobs.py").write_text(APP)
    topics: list[str] = []

    async def last_state(url: str, versions: dict[str, str]) -> set[str]:
        states: dict[str, str] = {}
        try:
            async with connect(url.replace("http", "ws") + "/_api/live", proxy=None) as socket:
                await socket.send(json.dumps({"type": "subscribe", "topics": topics, "versions": versions}))
                while set(states.values()) != {"completed"} or len(states) < len(topics):
                    message = json.loads(await asyncio.wait_for(socket.recv(), 60))
                    if message["type"] == "job":
                        states[message["topic"]] = message["job"]["state"]
                        versions[message["topic"]] = message["version"]
        except OSError:
            pass
        except Exception as error:
            if type(error).__name__ != "ConnectionClosedError":
                raise
        return set(states.values())

    with worker_process(Path(tmp_path), dsn) as workers:
        with started(tmp_path, "web", "--port", "0", TENURE_DSN=dsn) as first:
            url = url_of(first)
            async with httpx2.AsyncClient(base_url=f"{url}/_api", trust_env=False, verify=False, timeout=30) as web:
                await until(lambda: is_published(web, "sleep"), within=60)
                topics += [f"job:{await send(web, 'sleep', {'seconds': 1})}" for _ in range(5)]
            seen: list[dict[str, str]] = [{} for _ in range(20)]
            watching = [asyncio.create_task(last_state(url, versions)) for versions in seen]
            await until(lambda: all(len(versions) == len(topics) for versions in seen), within=60)
            first.signal(signal.SIGKILL)
            await asyncio.gather(*watching)
        workers.kill()
        with worker_process(Path(tmp_path), dsn), started(tmp_path, "web", "--port", "0", TENURE_DSN=dsn) as second:
            results = await asyncio.gather(*[last_state(url_of(second), {}) for _ in seen])
    assert results == [{"completed"}] * len(seen)


async def test_a_body_is_sent_at_once_after_its_head(serving, monkeypatch):
    """Also on a socket of `socket.create_server`, of which asyncio does not know that it is TCP: the body would wait 40 ms."""
    found: list[int] = []
    received = HttpProtocol.data_received

    def spy(protocol, data):
        found.append(protocol.transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        received(protocol, data)

    monkeypatch.setattr(HttpProtocol, "data_received", spy)
    web = await (await serving.serve()).client()
    assert (await web.get("/healthz")).status_code == 200
    assert found == [1]


async def test_the_server_has_the_bounds_that_are_tested_one_by_one(app, monkeypatch):
    """Other tests run their own uvicorn, with the same options."""
    made: list[uvicorn.Server] = []
    make = server._Server
    monkeypatch.setattr(server, "_Server", lambda config, ready: made.append(make(config, ready)) or made[0])
    monkeypatch.setattr(server, "MOST_CONNECTIONS", 1)
    ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(server.serve(app, server.WebServerOptions(port=0), ready.set_result))
    port = int((await asyncio.wait_for(ready, 30)).rpartition(":")[2])
    config = made[0].config
    assert (config.http, config.ws_max_size, config.h11_max_incomplete_event_size) == (HttpProtocol, 65536, 65536)
    assert None not in (config.ws_ping_interval, config.ws_ping_timeout, config.timeout_graceful_shutdown)
    _, held = await asyncio.open_connection("127.0.0.1", port)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /_api/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert b" 503 " in await asyncio.wait_for(reader.readline(), 10)
    for one in (held, writer):
        one.close()
    made[0].should_exit = True
    await serving
    await app.close()
