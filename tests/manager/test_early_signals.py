"""SIGTERM and SIGINT right after the start, before a supervisor handles them: the process exits with 0 and reports nothing."""

from __future__ import annotations

import os
import signal

import pytest

from tests.manager.worker_helpers import handles_sigterm
from tests.waiting import until

WITHIN = 15.0
BANNER = ("database ", "jobs ", "workers ", "next ", "      ")


async def exits_quietly(worker):
    await until(lambda: worker.process.poll() is not None, within=WITHIN)
    problems = [line for line in worker.said.splitlines() if "INFO" not in line and not line.startswith(BANNER)]
    assert (worker.process.returncode, problems) == (0, []), worker.said


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("command", ["worker", *(pytest.param(name, marks=pytest.mark.slow) for name in ("up", "dev"))])
async def test_a_signal_to_the_group_as_soon_as_signals_are_handled_ends_it_in_order(start, command, number):
    worker = start(command=command)
    await until(lambda: handles_sigterm(worker.pid))

    os.killpg(worker.pid, number)

    await exits_quietly(worker)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("command", ["worker", pytest.param("up", marks=pytest.mark.slow)])
async def test_a_signal_to_the_group_while_children_import_ends_it_in_order(start, queue, command, number):
    worker = start("--processes", "1", command=command)
    [child] = await until(worker.children, within=WITHIN)
    await until(lambda: handles_sigterm(child))

    os.killpg(worker.pid, number)

    await exits_quietly(worker)
    assert queue.sql("select id from tenure.workers") == []


async def test_a_signal_while_the_app_is_asked_for_its_database_ends_it_in_order(start, project):
    (project / "slow.py").write_text("import pathlib, time\npathlib.Path('loading').touch()\ntime.sleep(60)\n")
    up = start(app="slow:app", command="up")
    await until((project / "loading").exists, within=WITHIN)

    up.terminate()

    await exits_quietly(up)


async def test_a_signal_while_up_waits_for_a_lock_of_its_migration_ends_it_in_order(start, sql, dsn):
    sql("delete from tenure.migrations")
    sql("begin")
    sql("select pg_advisory_xact_lock(hashtextextended('tenure migrate ' || 'tenure', 0))")
    up = start(command="up")
    waiting = (
        "select 1 from pg_stat_activity"
        " where datname = current_database() and state = 'idle in transaction' and query ~ 'pg_try_advisory_xact_lock'"
    )
    await until(lambda: sql("select pg_stat_clear_snapshot()") and sql(waiting), within=WITHIN)

    up.terminate()

    await exits_quietly(up)
    sql("rollback")
