"""Behind a transaction pooler: no prepared statements, no session settings, no LISTEN; jobs run all the same."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tests.manager.workshop import serving
from tests.waiting import until

POOLED = {"TENURE_POOLED": "1"}
PGBOUNCER = shutil.which("pgbouncer") or shutil.which("/usr/sbin/pgbouncer")
needs_pgbouncer = pytest.mark.skipif(PGBOUNCER is None, reason="pgbouncer is not installed (apt-get install pgbouncer)")
DEAF = "LISTEN delivers nothing"

SETTINGS = """
[databases]
* = host={host} port={port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listen_port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 5
max_client_conn = 200
server_lifetime = 30
ignore_startup_parameters = extra_float_digits
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def pgbouncer(settings: Path, sockets: Path) -> subprocess.Popen[bytes]:
    # It refuses to be root, and must be able to reach the server's socket.
    run_as = ["-u", sockets.owner() if sockets.is_dir() else "nobody"] if os.geteuid() == 0 else []
    with settings.with_suffix(".log").open("wb") as log:
        return subprocess.Popen([PGBOUNCER, *run_as, settings], stdout=log, stderr=log)


@pytest.fixture
async def pooled_dsn(dsn, tmp_path):
    """The same database through PgBouncer in transaction mode."""
    server = conninfo_to_dict(dsn)
    port = free_port()
    settings = tmp_path / "pgbouncer.ini"
    # With auth_type = any the server's user is the one that is named here.
    text = SETTINGS.format(host=server["host"], port=server["port"], listen_port=port)
    settings.write_text(text.replace("\n[pgbouncer]", f" user={server['user']}\n[pgbouncer]"))
    tmp_path.chmod(0o755)
    pooler = pgbouncer(settings, Path(server["host"]))
    try:
        await until(lambda: answers(port))
        yield make_conninfo("", host="127.0.0.1", port=port, dbname=server["dbname"], user=server["user"])
    finally:
        pooler.kill()
        pooler.wait()


@needs_pgbouncer
async def test_behind_pgbouncer_deafness_is_said_once_and_jobs_run_by_polling(start, ledger, queue, pooled_dsn):
    ids = queue.add("quick", 50)
    worker = start("--concurrency", "5", dsn=pooled_dsn, env=POOLED)

    await queue.completed(*ids, within=20)
    # Once by the supervisor and once by its child: each process has ears of its own.
    await until(lambda: worker.said.count(DEAF), is_=2)
    await queue.completed(*queue.add("quick", 20))

    assert worker.said.count(DEAF) == 2
    assert sorted(set(ledger.runs(*ids))) == [1]
    assert "prepared statement" not in worker.said
    worker.terminate()
    await until(lambda: worker.process.poll() is not None)
    assert worker.process.returncode == 0
    assert queue.sql("select id from tenure.workers") == []


@needs_pgbouncer
async def test_behind_pgbouncer_a_direct_line_for_listening_hears(start, ledger, queue, pooled_dsn, dsn):
    worker = start(dsn=pooled_dsn, env={**POOLED, "TENURE_LISTEN_DSN": dsn})
    await serving(worker)
    await queue.completed(*queue.add("quick", 5))
    # The self-test of the ears is over when it has had its two seconds; a failed one would be logged by then.
    await until(lambda: queue.sql("select 1 from tenure.workers where started_at < clock_timestamp() - interval '3 s'"))
    assert DEAF not in worker.said


async def test_pooled_without_a_pooler_prepares_nothing_and_works(start, queue):
    worker = start(env=POOLED)
    await serving(worker)
    ids = queue.add("quick", 50)
    await queue.completed(*ids)
    worker.terminate()
    await until(lambda: worker.process.poll() is not None)
    assert worker.process.returncode == 0
