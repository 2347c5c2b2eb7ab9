"""The web server beside the workers of `tenure up` and `tenure dev`."""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path

import httpx2
import pytest

from tests.manager.worker_helpers import serving
from tests.processes import free_port
from tests.waiting import until

pytestmark = pytest.mark.slow


def answer(port: int, method: str, path: str, **more):
    """None while it cannot be reached."""
    try:
        return httpx2.request(method, f"http://127.0.0.1:{port}/_api{path}", timeout=20, trust_env=False, **more)
    except httpx2.TransportError:
        return None


def web_pid(worker) -> int | None:
    children = Path(f"/proc/{worker.pid}/task/{worker.pid}/children").read_text().split()
    found = [int(pid) for pid in children if "tenure.cli.run_with_parent" in Path(f"/proc/{pid}/cmdline").read_text()]
    return found[0] if found else None


async def test_up_serves_the_api_and_keeps_it_alive(start, queue):
    port = free_port()
    up = start("--processes", "1", "--web-port", str(port), command="up")
    dispatched = answer(port, "POST", "/jobs/quick/dispatch", json={"args": {}})
    assert dispatched is None or dispatched.status_code == 202
    await until(lambda: "ready: " in up.said, within=30)
    await until(lambda: answer(port, "GET", "/healthz"))
    sent = answer(port, "POST", "/jobs/quick/dispatch", json={"args": {}}).json()
    await queue.completed(sent["id"])

    first = web_pid(up)
    os.kill(first, signal.SIGKILL)
    assert answer(port, "GET", "/readyz").status_code == 200, "the socket stays open while another one starts"
    assert web_pid(up) not in (None, first)
    assert "web server died; starting another" in up.said
    await queue.completed(*queue.add("quick", 3))

    up.terminate()
    await until(up.process.poll, is_=0)
    with socket.create_server(("127.0.0.1", port)):
        pass  # it is free again


async def test_a_port_that_is_taken_is_reported_and_the_workers_run(start, queue):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        up = start("--processes", "1", "--web-port", str(port), command="up")
        await serving(up)
        assert f"cannot listen on 127.0.0.1:{port} (Address already in use): choose another --web-port, or --no-web" in up.said
        await queue.completed(*queue.add("quick", 3))
        assert web_pid(up) is None


async def test_without_the_extra_the_workers_run(start, queue, project):
    (project / "sitecustomize.py").write_text(
        "import importlib.util\nreal = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *more: None if name == 'starlette' else real(name, *more)\n"
    )
    env = {"TENURE_WEB_LISTEN": str(free_port()), "PYTHONPATH": str(project)}
    up = start("--processes", "1", command="up", env=env)
    await serving(up)
    assert "starlette is not installed; for the dashboard and the API, run `pip install 'tenure[web]'`" in up.said
    await queue.completed(*queue.add("quick", 3))
    dev = start("--processes", "1", command="dev", env=env)
    await serving(dev)
    assert "web        none: starlette is not installed" in dev.said
    assert "WARNING" not in dev.said, "the extra was not asked for"


async def test_no_web(start, queue):
    up = start("--processes", "1", "--no-web", command="up", env={"TENURE_WEB_LISTEN": str(free_port())})
    await serving(up)
    assert "web server" not in up.said
    assert web_pid(up) is None


async def test_dev_serves_new_code_as_it_is_saved(start, project):
    port = free_port()
    dev = start("--processes", "1", command="dev", env={"TENURE_WEB_LISTEN": str(port)})
    await until(lambda: "ready: " in dev.said, within=30)
    assert f"web        http://127.0.0.1:{port} (dashboard; API below /_api)" in dev.said
    await until(lambda: answer(port, "GET", "/kinds/quick"))
    code = (project / "jobs.py").read_text()

    def status(kind: str) -> int | None:
        found = answer(port, "POST", f"/jobs/{kind}/dispatch", json={"args": {"wrong": 1}})
        return None if found is None else found.status_code

    (project / "jobs.py").write_text("def broken(:\n")
    await until(lambda: "web server died" in dev.said)
    (project / "jobs.py").write_text(code + "\n@app.job(name='brand_new')\nasync def later(n: int) -> int:\n    return n\n")
    await until(lambda: status("brand_new"), is_=422, within=30)
