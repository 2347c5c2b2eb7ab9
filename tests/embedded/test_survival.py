import os
import shutil
import signal
import subprocess

import psycopg
import pytest

from tenure.embedded import EmbeddedServer
from tenure.embedded.processes import start_time

from .conftest import guardians_of, processes_naming, status, until

pytestmark = pytest.mark.slow


def kill_guardian(home):
    [guardian] = until(lambda: guardians_of(home))
    os.kill(guardian, signal.SIGKILL)
    until(lambda: start_time(guardian) is None)  # until then it holds its lock
    return guardian


def test_kill_9_of_all_holders_ends_the_server_and_its_guardian(home, hold):
    holders = [hold(home).ready(), hold(home).ready()]
    for holder in holders:
        holder.kill()
    until(lambda: not processes_naming("/postgres", home))
    until(lambda: not guardians_of(home))


def test_a_server_without_holders_is_adopted_not_killed(home, hold):
    holder = hold(home).ready()
    kill_guardian(home)
    holder.kill()
    orphan = status(home)
    assert (orphan.running, orphan.holders) == (True, ())

    adopter = hold(home).ready()
    assert status(home).pid == orphan.pid
    assert len(until(lambda: guardians_of(home))) == 1
    adopter.kill()
    until(lambda: not processes_naming(home))


def test_the_next_entry_replaces_a_killed_guardian(home):
    with EmbeddedServer(home, durable=False) as server:
        killed = kill_guardian(home)
        with EmbeddedServer(home, durable=False):
            until(lambda: [pid for pid in guardians_of(home) if pid != killed])
        assert server.running


def test_a_server_that_crashed_starts_again_at_once(home):
    with EmbeddedServer(home, durable=False) as server:
        crashed = server.status().pid
        os.kill(crashed, signal.SIGKILL)
        until(lambda: not server.running)
        server.start()
        assert server.status().pid != crashed
        psycopg.connect(server.dsn).close()


def test_a_stale_pid_file_with_the_pid_of_another_process_does_no_harm(home, hold):
    with EmbeddedServer(home, durable=False) as server:
        pid = server.status().pid
        pid_file = (home / "pg" / "postmaster.pid").read_text()
        lock_file = (home / "run" / ".s.PGSQL.5432.lock").read_text()
    with subprocess.Popen(["sleep", "60"]) as stranger:
        (home / "pg" / "postmaster.pid").write_text(pid_file.replace(str(pid), str(stranger.pid), 1))
        (home / "run" / ".s.PGSQL.5432.lock").write_text(lock_file.replace(str(pid), str(stranger.pid), 1))
        assert not server.running
        with EmbeddedServer(home, durable=False) as server:
            psycopg.connect(server.dsn).close()
        assert stranger.poll() is None
        stranger.kill()


def test_removing_the_home_under_a_running_server_ends_it(reachable, hold):
    home = reachable / "home"
    holder = hold(home).ready()
    until(lambda: guardians_of(home))
    shutil.rmtree(home, ignore_errors=True)
    shutil.rmtree(home, ignore_errors=True)
    until(lambda: not processes_naming("/postgres", home))
    holder.leave()


@pytest.mark.parametrize("settings", [{"shared_buffers": "much"}, {"no_such_setting": "1"}])
def test_a_failed_start_shows_the_end_of_the_log_and_leaves_nothing(home, settings):
    server = EmbeddedServer(home, settings=settings)
    with pytest.raises(Exception, match=next(iter(settings))):
        server.start()
    assert status(home).holders == ()
    assert not processes_naming("/postgres", home)
