"""Metrics of workers, as Prometheus reads them from a real supervisor."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import urllib.error
import urllib.request
from textwrap import dedent

import pytest

from tenure import ConfigError
from tenure.observe.prometheus import host_and_port, render
from tests.processes import run_process, worker_process
from tests.waiting import until

JOBS = """
    import os, signal
    from tenure import Snooze, Tenure

    app = Tenure()

    @app.job
    def work() -> None: ...

    @app.job(queue="mail", max_attempts=1)
    async def fail() -> None:
        raise ValueError

    @app.job(max_attempts=1)
    def wait() -> None:
        import time
        time.sleep(60)
    """


def samples(text: str) -> dict[str, float]:
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


async def url_of(worker) -> str:
    [url] = await until(lambda: re.findall(r"serving metrics.*(http://\S+/metrics)", worker.said))
    return url


def read(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as response:
        assert response.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        return response.read().decode()


def status(method: str, url: str) -> int:
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=10)
    return refused.value.code


def promtool(*arguments: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
    if shutil.which("promtool") is None:
        pytest.skip("promtool is not installed (Debian: prometheus)")
    return subprocess.run(["promtool", *arguments], input=text, capture_output=True, text=True, check=False)


@pytest.fixture
def enqueue(sql):
    def enqueue(kind: str, times: int, queue: str = "default") -> None:
        for _ in range(times):
            sql("select tenure.enqueue(%s)", f'[{{"kind": "{kind}", "queue": "{queue}", "max_attempts": 1}}]')

    return enqueue


async def test_runs_slots_and_renewals_of_all_processes(dsn, project, enqueue):
    (project / "jobs.py").write_text(dedent(JOBS))
    enqueue("work", 30)
    enqueue("fail", 2, "mail")
    options = ("--processes", "2", "--concurrency", "3", "--metrics-port", "0")
    with worker_process(project, dsn, *options, env={"TENURE_DSN": dsn}) as worker:
        url = await url_of(worker)
        done = 'tenure_worker_runs_total{queue="default",kind="work",outcome="completed"}'
        await until(lambda: samples(read(url)).get(done) == 30, within=30)
        failed = 'tenure_worker_runs_total{queue="mail",kind="fail",outcome="failed"}'
        await until(lambda: samples(read(url)).get(failed) == 2, within=30)
        text = read(url)
        found = samples(text)
        assert found['tenure_worker_processes{pool="default"}'] == 2
        assert found['tenure_worker_slots{pool="default"}'] == 6
        assert found['tenure_worker_run_seconds_bucket{queue="default",kind="work",le="+Inf"}'] == 30
        assert found['tenure_worker_run_seconds_count{queue="default",kind="work"}'] == 30
        assert found["tenure_worker_lease_renewal_age_seconds"] < 60
        assert found["tenure_worker_process_deaths_total"] == 0
        assert sum(name.startswith("tenure_worker_process_resident_memory_bytes{") for name in found) == 2
        checked = promtool("check", "metrics", text=text)
        assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")


async def test_a_process_that_dies_is_counted_and_takes_no_counts_along(dsn, project, enqueue):
    (project / "jobs.py").write_text(dedent(JOBS))
    enqueue("work", 5)
    with worker_process(project, dsn, "--metrics-port", "0", env={"TENURE_DSN": dsn}) as worker:
        url = await url_of(worker)
        done = 'tenure_worker_runs_total{queue="default",kind="work",outcome="completed"}'
        await until(lambda: samples(read(url)).get(done) == 5, within=30)
        claimed = await until(lambda: samples(read(url)).get('tenure_worker_claim_seconds_count{pool="default"}'))
        enqueue("wait", 1)
        await until(lambda: samples(read(url))['tenure_worker_slots_busy{pool="default"}'] == 1)
        os.kill(worker.children()[0], signal.SIGKILL)
        await until(lambda: samples(read(url))["tenure_worker_process_deaths_total"] == 1)
        assert samples(read(url))[done] == 5
        requeued = 'tenure_worker_jobs_requeued_total{queue="default",kind="wait",why="crashed"}'
        await until(lambda: samples(read(url)).get(requeued) == 1)
        assert samples(read(url))['tenure_worker_claim_seconds_count{pool="default"}'] >= claimed


async def test_lost_connections_of_the_supervisor_and_its_processes_are_counted(dsn, project, sql, enqueue):
    (project / "jobs.py").write_text(dedent(JOBS))
    with worker_process(project, dsn, "--metrics-port", "0", env={"TENURE_DSN": dsn}) as worker:
        url = await url_of(worker)
        # One that claims and one that settles, and the supervisor's: each must be made again.
        ours = (
            "select pid from pg_stat_activity where datname = current_database()"
            " and application_name in ('tenure claim', 'tenure settle', 'tenure control')"
        )
        # One that is ended while it is being made does not count: all three have been used.
        enqueue("work", 1)
        await until(lambda: sql("select count(*) from tenure.history") == [(1,)])
        await until(lambda: len(sql(ours)) >= 3)
        assert samples(read(url))["tenure_worker_reconnects_total"] == 0
        sql(f"select pg_terminate_backend(pid) from ({ours}) s")
        enqueue("work", 1)  # the connection that settles is made again when it is needed
        await until(lambda: samples(read(url))["tenure_worker_reconnects_total"] >= 3)


async def test_other_requests_and_slow_clients_are_refused(dsn, project):
    (project / "jobs.py").write_text(dedent(JOBS))
    with worker_process(project, dsn, "--metrics-port", "0", env={"TENURE_DSN": dsn}) as worker:
        url = await url_of(worker)
        for method, path, code in (("GET", "/", 404), ("POST", "/metrics", 405)):
            assert status(method, url.replace("/metrics", path)) == code
        host, port = url.removeprefix("http://").removesuffix("/metrics").split(":")
        with socket.create_connection((host, int(port)), timeout=20) as slow:
            slow.sendall(b"GET /metrics HTTP/1.1\r\n")
            assert slow.recv(1) == b""  # closed by the server, which has other things to do
        assert "tenure_worker_info" in read(url)


def test_a_port_in_use_is_reported(dsn, project):
    (project / "jobs.py").write_text(dedent(JOBS))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        import sys

        command = [sys.executable, "-m", "tenure", "worker", "--app", "jobs:app", "--dsn", dsn, "--metrics-port", port]
        ran = run_process(command, cwd=project, env={**os.environ, "TENURE_DSN": dsn}, timeout=60)
    assert ran.returncode != 0
    assert f"--metrics-port {port}: " in ran.stderr
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize(
    ("given", "meant"), [("9464", ("127.0.0.1", 9464)), ("0.0.0.0:80", ("0.0.0.0", 80)), ("[::1]:9464", ("::1", 9464))]
)
def test_addresses(given, meant):
    assert host_and_port(given) == meant


@pytest.mark.parametrize("wrong", ["", "localhost", "1:2:x", "70000", "-1"])
def test_wrong_addresses_are_refused(wrong):
    with pytest.raises(ConfigError, match="must be a port or HOST:PORT"):
        host_and_port(wrong)


def test_a_supervisor_without_processes_has_metrics_too():
    from tenure.model.run_counts import SupervisorMetrics

    assert "tenure_worker_process_deaths_total 0" in render(SupervisorMetrics(processes=[], deaths=0, renewed_ago=None, runs=[]))


def test_lost_runs_and_outcomes_that_are_not_written_are_counted():
    from uuid import uuid4

    from tenure.model.events import RunLost
    from tenure.model.run_counts import ProcessMetrics, RunCounter, SupervisorMetrics

    counter = RunCounter()
    counter.add_lost(RunLost(job_id=uuid4(), kind="work", fence=1, reason="taken_by_another_worker", queue="mail"))
    processes = [
        ProcessMetrics(pool="default", name=name, running=1, slots=2, memory_mb=1.0, age=1.0, unwritten=unwritten)
        for name, unwritten in (("a", 2), ("b", 3))
    ]
    text = render(SupervisorMetrics(processes=processes, deaths=0, renewed_ago=None, runs=counter.take()))
    assert 'tenure_worker_runs_total{queue="mail",kind="work",outcome="lost"} 1' in text
    assert 'tenure_worker_outcomes_unwritten{pool="default"} 5' in text
