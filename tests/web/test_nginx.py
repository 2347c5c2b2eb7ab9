"""The configuration for nginx that docs/how-to/web.md shows, in a real nginx in front of a real `tenure web`."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from urllib.parse import urljoin

import httpx2
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from tenure import Tenure
from tenure.web import create_token
from tests.cli.started import started
from tests.docs.pages import blocks_of
from tests.processes import free_port, worker_process
from tests.system_packages import nginx
from tests.waiting import until
from tests.web.serving import Live
from tests.web.test_server import url_of

pytestmark = pytest.mark.slow

APP = """
import asyncio
from pathlib import Path

from tenure import Context, Tenure

app = Tenure()


@app.job
async def export_users(ctx: Context) -> str:
    ctx.progress(50, "half of it")
    while not Path("release").exists():
        await asyncio.sleep(0.02)
    return "exported"
"""
CLIENT = "127.0.0.2"
"""The address of a user, which is not that of the proxy."""


@pytest.fixture(scope="session")
def program() -> str:
    found = nginx()
    if found is None:
        pytest.skip("nginx is not installed")
    return found


def configuration(upstream: str, port: int, folder: Path) -> str:
    """What the page shows, with ports of this test."""
    [shown] = [block.text for block in blocks_of("docs/how-to/web.md", "") if "proxy_pass" in block.text]
    shown = shown.replace("http://127.0.0.1:8080", upstream).replace("listen 80;", f"listen 127.0.0.1:{port};")
    temporary = "\n".join(f"{name}_temp_path {folder};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    return (
        f"pid {folder}/nginx.pid;\nerror_log {folder}/error.log;\nevents {{}}\nhttp {{\naccess_log off;\n{temporary}\n{shown}}}\n"
    )


@contextmanager
def proxying(program: str, upstream: str, folder: Path) -> Iterator[int]:
    """nginx on a port of its own."""
    port = free_port()
    folder.mkdir()
    (folder / "nginx.conf").write_text(configuration(upstream, port, folder))
    account = "user root;" if os.geteuid() == 0 else ""  # who started it owns its folder
    command = [program, "-p", str(folder), "-c", str(folder / "nginx.conf"), "-g", f"daemon off; {account}"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        yield port
    finally:
        process.terminate()
        _, said = process.communicate(timeout=20)
    assert process.returncode == 0, said


class Site:
    """jobs.example.com, as a user reaches it."""

    def __init__(self, port: int, token: str, stack: AsyncExitStack) -> None:
        self.port, self.token, self._stack = port, token, stack
        self.host = f"jobs.example.com:{port}"
        self.headers = {"authorization": f"Bearer {token}"}

    async def client(self, **headers: str) -> httpx2.AsyncClient:
        transport = httpx2.AsyncHTTPTransport(local_address=CLIENT)
        return await self._stack.enter_async_context(
            httpx2.AsyncClient(
                transport=transport, base_url=f"http://127.0.0.1:{self.port}", headers={"host": self.host, **headers}, timeout=30
            )
        )

    async def live(self, origin: str) -> Live:
        connection = connect(
            f"ws://{self.host}/tenure/_api/live", host="127.0.0.1", port=self.port, origin=origin, proxy=None, open_timeout=20
        )
        return Live(await self._stack.enter_async_context(connection))


@pytest.fixture
async def site(program: str, app: Tenure, dsn: str, project: Path, tmp_path: Path) -> AsyncIterator[Site]:
    (project / "jobs.py").write_text(APP)
    token = (await create_token(app, "tests", "admin")).token
    [shown] = [line for block in blocks_of("docs/how-to/web.md", "sh") for line in block.lines if "--trusted-proxy" in line]
    words = [*shown.split()[1:], "--dsn", dsn, "--app", "jobs:app", "--port", "0"]
    async with AsyncExitStack() as stack:
        stack.enter_context(worker_process(project, dsn))
        web = stack.enter_context(started(project, *words))
        port = stack.enter_context(proxying(program, url_of(web), tmp_path / "nginx"))
        site = Site(port, token, stack)
        client = await site.client()

        async def answers() -> bool:
            try:
                return (await client.get("/tenure/_api/healthz")).status_code == 200
            except httpx2.TransportError:
                return False

        await until(answers)
        yield site
    await app.close()


async def test_the_dashboard_and_all_it_loads_are_found_below_the_prefix(site):
    client = await site.client()
    page = await client.get("/tenure/")
    assert page.status_code == 200
    loaded = re.findall(r'(?:src|href)="([^"#]+)"', page.text)
    assert len(loaded) > 10
    for link in loaded:
        address = urljoin("/tenure/", link)
        assert address.startswith("/tenure/")
        assert (await client.get(address)).status_code == 200, address
    assert (await client.get("/_api/healthz")).status_code == 404


async def test_a_token_is_needed_and_other_names_are_refused(site, sql):
    client = await site.client()
    assert (await client.get("/tenure/_api/jobs")).status_code == 401
    assert (await client.get("/tenure/_api/jobs", headers=site.headers)).status_code == 200
    assert (await client.get("/tenure/_api/jobs", headers={**site.headers, "host": "evil.example"})).status_code == 421


async def test_the_audit_log_has_the_address_of_the_user(site, sql):
    client = await site.client(**site.headers)
    sent = await client.post("/tenure/_api/jobs/export_users/dispatch", json={"args": {}})
    assert sent.status_code == 202
    assert sql("select distinct ip from tenure.audit") == [(CLIENT,)]


async def test_pages_of_this_site_may_change_something_and_others_may_not(site):
    client = await site.client(**site.headers)
    for origin, status in ((f"http://{site.host}", 202), ("http://evil.example", 403)):
        sent = await client.post("/tenure/_api/jobs/export_users/dispatch", json={"args": {}}, headers={"origin": origin})
        assert sent.status_code == status, sent.text


async def test_a_websocket_follows_a_job_to_its_end(site, project):
    client = await site.client(**site.headers)
    job = (await client.post("/tenure/_api/jobs/export_users/dispatch", json={"args": {}})).json()["id"]
    live = await site.live(f"http://{site.host}")
    await live.send(type="auth", token=site.token)
    await live.send(type="subscribe", topics=[f"job:{job}"])
    half = await live.until(lambda message: message["type"] == "job" and message["job"]["progress_percent"] == 50)
    assert half["job"]["state"] == "running"
    (project / "release").touch()
    await live.until(lambda message: message["type"] == "job" and message["job"]["state"] == "completed")


async def test_a_websocket_of_another_site_is_refused(site):
    with pytest.raises(InvalidStatus):
        await site.live("http://evil.example")


async def test_events_are_delivered_when_they_are_sent(site, project):
    """Not when the job ends: the proxy does not buffer them."""
    client = await site.client(**site.headers)
    job = (await client.post("/tenure/_api/jobs/export_users/dispatch", json={"args": {}})).json()["id"]
    states: list[str] = []
    async with asyncio.timeout(60), client.stream("GET", f"/tenure/_api/jobs/{job}/events") as stream:
        assert stream.status_code == 200
        async for line in stream.aiter_lines():
            if line.startswith("data:"):
                states.append(json.loads(line.removeprefix("data:"))["job"]["state"])
                if states[-1] == "running":
                    (project / "release").touch()
    assert states[-1] == "completed"
