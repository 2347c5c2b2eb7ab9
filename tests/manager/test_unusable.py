"""A worker that cannot work reports the reason and the remedy, and exits with its own exit code."""

from __future__ import annotations

import os
import sys

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from tests.manager.worker_helpers import serving
from tests.processes import run_process
from tests.waiting import until

pytestmark = pytest.mark.slow

EXIT_SETTINGS, EXIT_SCHEMA = 3, 4


async def gives_up(worker, code, *texts):
    await until(lambda: worker.process.poll() is not None)
    assert [text for text in texts if text not in worker.said] == [], worker.said
    assert worker.process.returncode == code, worker.said


async def test_a_module_that_does_not_exist(start):
    await gives_up(
        start(app="nowhere:app"), EXIT_SETTINGS, "no module 'nowhere'", "run it in your project's folder", "--app MODULE:APP"
    )


async def test_a_submodule_that_does_not_exist(start):
    await gives_up(start(app="jobs.inner:app"), EXIT_SETTINGS, "--app jobs.inner:app", "jobs.inner")


async def test_a_name_that_is_not_in_the_module(start):
    await gives_up(start(app="jobs:application"), EXIT_SETTINGS, "'application' is not a Tenure app", "did you mean jobs:app?")


async def test_a_name_that_is_something_else(start, project):
    (project / "plain.py").write_text("app = 1\n")
    await gives_up(start(app="plain:app"), EXIT_SETTINGS, "'app' is not a Tenure app", "plain has no Tenure() at its top level")


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import no_such_library", "No module named 'no_such_library'"),
        ("def broken(:", "SyntaxError"),
        ("raise RuntimeError('my own mistake')", "my own mistake"),
        ("raise RuntimeError('x' * 100_000 + 'the end')", "the end"),
        ("raise SystemExit(0)", "SystemExit"),
    ],
    ids=["a missing library", "a typo", "an error", "a very long error", "an exit"],
)
async def test_a_module_that_cannot_be_imported_is_shown_with_its_own_error(start, project, run_log, code, said):
    (project / "jobs.py").write_text(code + "\n")
    await gives_up(start(), EXIT_SETTINGS, said, "jobs.py")


async def test_a_module_whose_import_ends_the_process(start, project, run_log):
    """No process can report why, so it is restarted after growing pauses, and logged each time."""
    (project / "jobs.py").write_text("import os\nos._exit(5)\n")
    worker = start()
    await until(lambda: "exit code 5" in worker.said)


def test_no_database_at_all_names_every_way_to_set_one(project, run_log):
    bare = {name: value for name, value in os.environ.items() if not name.startswith(("TENURE_", "PG", "DATABASE_"))}
    command = [sys.executable, "-m", "tenure", "worker", "--app", "jobs:app"]
    done = run_process(command, cwd=project, env=bare, timeout=60)
    assert done.returncode == EXIT_SETTINGS
    for way in ("--dsn", "TENURE_DSN", "DATABASE_URL", "tenure.toml", 'Tenure("postgresql://', "tenure dev"):
        assert way in done.stderr


async def test_a_dsn_that_cannot_be_read(start):
    worker = start(dsn="postgresql://host/database?color=red")
    await gives_up(worker, EXIT_SETTINGS, "the DSN cannot be read", "give postgresql://user@host/database")


async def test_a_database_without_the_schema_names_the_command_that_makes_it(start, sql):
    sql("drop schema tenure cascade")
    await gives_up(start(), EXIT_SCHEMA, "has no Tenure schema", "tenure migrate")


async def test_a_database_that_has_moved_on_asks_for_an_upgrade(start, sql):
    sql("insert into tenure.migrations (version, phase, name) values (99, 'pre', 'later'), (99, 'post', 'later')")
    await gives_up(start(), EXIT_SCHEMA, "has schema version 99", "upgrade Tenure here")


async def test_a_worker_of_the_previous_version_continues_in_a_rolling_deploy(start, sql, queue):
    sql("insert into tenure.migrations (version, phase, name) values (99, 'pre', 'later')")
    await serving(start())
    await queue.completed(*queue.add("quick"))


async def test_a_role_without_privileges_is_reported(start, dsn, sql):
    """Not an outage, so there is nothing to wait for; silence would look like an idle worker."""
    role = f"stranger_{os.getpid()}"
    sql(f"create role {role} login")
    try:
        worker = start(dsn=make_conninfo(dsn, user=role))
        await until(lambda: worker.process.poll() is not None)
        assert worker.process.returncode != 0
        assert "permission denied" in worker.said
    finally:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(f"drop role {role}")


@pytest.mark.parametrize("wrong", [{"dbname": "no_such_database"}, {"user": "no_such_role"}], ids=["database", "role"])
async def test_up_reports_a_wrong_database_or_role_with_the_exit_code_of_worker(start, dsn, wrong):
    await gives_up(start(command="up", dsn=make_conninfo(dsn, **wrong)), EXIT_SETTINGS, "no_such_", "does not exist")


async def test_up_waits_for_a_server_that_is_down(start, dsn, queue, tmp_path):
    known = psycopg.conninfo.conninfo_to_dict(dsn)
    if not str(known["host"]).startswith("/"):
        pytest.skip("the server of these tests has no socket here")
    up = start("--processes", "1", command="up", dsn=make_conninfo(dsn, host=str(tmp_path)))
    await until(lambda: "cannot be reached" in up.said)

    name = f".s.PGSQL.{known['port']}"
    (tmp_path / name).symlink_to(f"{known['host']}/{name}")

    await serving(up)
    await queue.completed(*queue.add("quick"))
