import asyncio
import json
import os
import subprocess
import sys

import asyncpg
import psycopg
import pytest

from tenure.embedded import EmbeddedServer, find_binaries, processes

from .conftest import SEARCH_PATH, guardians_of, processes_naming, status, until

pytestmark = pytest.mark.slow


def answer(dsn):
    with psycopg.connect(dsn) as connection:
        return connection.execute("select current_user || ' in ' || current_database()").fetchone()[0]


def test_two_processes_share_one_server_until_the_last_one_leaves(home, hold):
    first, second = hold(home).ready(), hold(home).ready()
    assert first.dsn == second.dsn
    assert status(home).holders == tuple(sorted((first.pid, second.pid)))
    assert len(processes_naming("/postgres", home / "pg")) == 1

    first.leave()
    assert status(home).holders == (second.pid,)
    assert answer(second.dsn) == "tenure in tenure"

    second.leave()
    assert not status(home).running
    assert not processes_naming("/postgres", home)
    until(lambda: not guardians_of(home))


def test_kill_9_of_one_leaves_the_other_working(home, hold):
    starter, other = hold(home).ready(), hold(home).ready()
    starter.kill()
    assert status(home).holders == (other.pid,)
    assert answer(other.dsn) == "tenure in tenure"
    other.leave()
    assert not status(home).running


def test_three_that_begin_at_once_on_a_new_home_share_one_server(reachable, hold):
    holders = [hold(reachable / "new" / "home") for _ in range(3)]
    dsns = {holder.ready().dsn for holder in holders}
    assert len(dsns) == 1
    assert len(status(reachable / "new" / "home").holders) == 3
    for holder in holders:
        holder.leave()
    assert not status(reachable / "new" / "home").running


def test_each_object_in_one_process_counts(home):
    first, second = EmbeddedServer(home, durable=False), EmbeddedServer(home, durable=False)
    with first:
        assert second.start() is second
        assert second.start() is second, "starting twice is holding once"
        pid = second.status().pid
    assert second.running
    assert second.status().pid == pid
    second.stop()
    second.stop()
    first.stop()
    assert not second.running


def test_a_process_that_does_not_stop_the_server_releases_it_at_exit(home):
    forgetful = "import sys\nfrom pathlib import Path\nfrom tenure.embedded import EmbeddedServer\n"
    forgetful += "EmbeddedServer(Path(sys.argv[1])).start()"
    environment = {**os.environ, "PYTHONPATH": SEARCH_PATH}
    subprocess.run([sys.executable, "-c", forgetful, home], env=environment, check=True, timeout=20)
    assert not processes_naming("/postgres", home)


def test_a_forked_child_does_not_let_go_for_its_parent(home):
    with EmbeddedServer(home, durable=False) as server:
        child = os.fork()
        if child == 0:
            server.stop()
            os._exit(0)
        os.waitpid(child, 0)
        assert server.status().holders == (os.getpid(),)
        assert answer(server.dsn) == "tenure in tenure"


def test_a_reused_pid_is_not_a_holder(home):
    (home / "holders.json").write_text(json.dumps([{"id": "gone", "pid": os.getpid(), "started": "1"}]))
    assert status(home).holders == ()
    with EmbeddedServer(home, durable=False) as server:
        assert server.status().holders == (os.getpid(),)
    assert not server.running


def test_processes_are_distinguished_where_there_is_no_proc(home, monkeypatch):
    monkeypatch.setattr(processes, "HAS_PROC", False)
    with EmbeddedServer(home, durable=False) as server:
        assert server.status().holders == (os.getpid(),)
        assert server.running
    assert not server.running
    assert not processes_naming("/postgres", home)


def test_the_dsn_serves_psycopg_asyncpg_and_psql(home):
    async def ask_asyncpg(dsn):
        connection = await asyncpg.connect(dsn)
        try:
            return await connection.fetchval("select current_user || ' in ' || current_database()")
        finally:
            await connection.close()

    with EmbeddedServer(home, durable=False) as server:
        psql = [
            find_binaries().program("psql"),
            "-XAtc",
            "select current_user || ' in ' || current_database()",
            server.dsn,
        ]
        said = subprocess.run(psql, capture_output=True, text=True, check=True).stdout.strip()
        answers = {answer(server.dsn), asyncio.run(ask_asyncpg(server.dsn)), said}
    assert answers == {"tenure in tenure"}
