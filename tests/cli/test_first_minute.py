"""A newcomer's first minute: a new folder, `tenure init`, `tenure dev`, and everything else without a single export."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tenure.embedded import EmbeddedServer
from tests.cli.started import FOREIGN, started
from tests.cli.test_cli import tenure
from tests.processes import run_process
from tests.waiting import until

CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}

SCRIPT = """
import logging
logging.basicConfig(level=logging.INFO)
from jobs import app, hello
print(hello.enqueue_sync("Script").result_sync("30s"))
"""

NEEDS_THE_VARIABLE = """
import os
from tenure import Tenure

DSN = os.environ["TENURE_DSN"]
app = Tenure()

@app.job
async def where(n: int) -> bool:
    return DSN == app.settings.dsn == os.environ["TENURE_DSN"]
"""


@pytest.fixture
def folder():
    """Not pytest's own: as root the server's account cannot reach that."""
    folder = Path(tempfile.mkdtemp(prefix="tenure-minute-"))
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def running(folder: Path) -> list[Path]:
    return list(folder.glob(".tenure/**/postmaster.pid"))


def run_script(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", SCRIPT]
    return run_process(command, cwd=folder, env=CLEAN, check=True, timeout=60)


async def stopped(dev, folder: Path) -> None:
    dev.signal(signal.SIGINT)
    assert dev.ends(within=40) == 0, dev.said
    await until(lambda: running(folder), is_=[])


@pytest.mark.slow
async def test_from_an_empty_folder_to_a_result_without_an_export(folder):
    written = tenure("init", cwd=folder)
    assert written.returncode == 0
    assert "tenure dev" in written.stdout
    with started(folder, "dev") as dev:
        assert dev.says("ready: ", within=90), dev.said
        [next_command] = re.findall(r"in another terminal: tenure (.*)", dev.said)
        assert next_command == "enqueue hello --arg name=Ada --wait"
        first_lines = dev.said.partition("ready: ")[0]
        for fact in (f"an embedded PostgreSQL in {folder}/.tenure", "hello, from jobs:app", "2 processes for queue default"):
            assert fact in first_lines
        assert "leading" not in dev.said

        answered = tenure(*next_command.split(), cwd=folder)
        assert (answered.stdout, answered.returncode) == ('"Hello, Ada!"\n', 0), answered.stderr
        assert f"using the embedded server in {folder}/.tenure" in answered.stderr

        below = folder / "web" / "views"
        below.mkdir(parents=True)
        listed = tenure("jobs", "list", "--json", cwd=below)
        assert [job["kind"] for job in json.loads(listed.stdout)["jobs"]] == ["hello"]
        assert listed.stderr == "", "a program reads it"
        script = run_script(folder)
        assert script.stdout == "Hello, Script!\n"
        assert script.stderr.count("using the embedded PostgreSQL of this project") == 1
        await stopped(dev, folder)

    away = tenure("jobs", "list", cwd=folder)
    assert away.returncode == 3
    assert "tenure dev" in away.stderr
    with started(folder, "dev") as again:
        assert again.says("ready: ", within=90), again.said
        listed = tenure("jobs", "list", "--json", cwd=folder)
        assert len(json.loads(listed.stdout)["jobs"]) == 2, "the database was kept"
        await stopped(again, folder)


@pytest.mark.slow
async def test_an_app_that_needs_the_variable_at_import_gets_it_and_one_exported_by_hand_is_the_same_server(folder):
    (folder / "shop.py").write_text(NEEDS_THE_VARIABLE)
    with started(folder, "dev", "--app", "shop:app", "--processes", "1") as dev:
        assert dev.says("ready: ", within=90), dev.said
        words = ("enqueue", "where", "--arg", "n=1", "--app", "shop:app", "--wait", "30s")
        answered = tenure(*words, cwd=folder)
        assert answered.stdout == "true\n", answered.stderr
        [dsn] = [
            one["value"] for one in json.loads(tenure("config", "--json", cwd=folder).stdout)["settings"] if one["name"] == "dsn"
        ]
        await stopped(dev, folder)

    with started(folder, "dev", "--app", "shop:app", "--processes", "1", TENURE_DSN=dsn) as dev:
        assert dev.says("ready: ", within=90), dev.said
        assert tenure(*words, cwd=folder, TENURE_DSN=dsn).stdout == "true\n"
        await stopped(dev, folder)


@pytest.mark.slow
def test_dev_with_a_database_of_its_own_uses_that_and_starts_none(folder, fresh_dsn):
    assert tenure("init", cwd=folder).returncode == 0
    (folder / "tenure.toml").write_text('app = "jobs:app"\nlog_format = "json"\n')
    with started(folder, "dev", TENURE_DSN=make_conninfo(fresh_dsn, password="s3cret")) as dev:
        assert dev.says('"message": "ready: ', within=60), dev.said
        assert re.search(rf"database   .*{conninfo_to_dict(fresh_dsn)['dbname']}", dev.said)
        assert "s3cret" not in dev.said
        dev.signal(signal.SIGINT)
        assert dev.ends(within=40) == 0
    assert not (folder / ".tenure").exists()


@pytest.mark.parametrize("command", ["up", "worker"])
def test_a_service_without_a_database_does_not_start(folder, command):
    assert tenure("init", cwd=folder).returncode == 0
    refused = tenure(command, cwd=folder, TENURE_DSN="")
    assert refused.returncode == 3
    assert "no database is set" in refused.stderr
    assert "--embedded" in refused.stderr
    assert not (folder / ".tenure").exists()


@pytest.mark.slow
@pytest.mark.parametrize(("words", "columns"), [(("worker", "--embedded"), None), (("up",), 100)], ids=["asked for", "terminal"])
async def test_an_embedded_server_is_started_where_it_is_asked_for_or_seen(folder, words, columns):
    assert tenure("init", cwd=folder).returncode == 0
    with started(folder, *words, columns=columns) as service:
        assert service.says("ready: ", within=90), service.said
        assert "starting an embedded PostgreSQL" in service.said
        await stopped(service, folder)


@pytest.mark.slow
async def test_a_service_uses_an_embedded_server_that_runs_and_does_not_keep_it(folder):
    assert tenure("init", cwd=folder).returncode == 0
    (folder / "below").mkdir()
    with EmbeddedServer(folder / ".tenure"):
        for command, place in (("up", folder), ("worker", folder / "below")):
            with started(place, command, "--processes", "1") as service:
                assert service.says("ready: ", within=60), service.said
                assert service.said.count("using the embedded PostgreSQL of this project") == 1, service.said
                assert str(folder / ".tenure") in service.said
                answered = tenure("enqueue", "hello", "--arg", "name=Ada", "--wait", cwd=folder)
                assert (answered.stdout, answered.returncode) == ('"Hello, Ada!"\n', 0), answered.stderr
                service.signal(signal.SIGTERM)
                assert service.ends(within=40) == 0, service.said
    await until(lambda: running(folder), is_=[])
    for command in ("up", "worker"):
        assert tenure(command, cwd=folder).returncode == 3
    assert running(folder) == [], "it is not started"


@pytest.mark.slow
def test_a_service_whose_code_cannot_be_imported_without_a_database_says_both(folder):
    (folder / "shop.py").write_text(NEEDS_THE_VARIABLE)
    refused = tenure("up", "--app", "shop:app", cwd=folder)
    assert refused.returncode == 3
    assert "no database is set" in refused.stderr
    assert "KeyError: 'TENURE_DSN'" in refused.stderr


@pytest.mark.slow
def test_a_service_whose_code_names_the_database_needs_no_setting(folder, fresh_dsn):
    (folder / "shop.py").write_text(f"from tenure import Tenure\napp = Tenure({fresh_dsn!r})\n@app.job\nasync def work(): ...\n")
    for command in ("up", "worker"):
        with started(folder, command, "--app", "shop:app", "--processes", "1") as service:
            assert service.says("ready: ", within=60), service.said
            service.signal(signal.SIGTERM)
            assert service.ends(within=40) == 0, service.said


def test_init_overwrites_nothing_unless_it_is_forced(folder):
    (folder / "jobs.py").write_text("mine = 1\n")
    refused = tenure("init", cwd=folder)
    assert refused.returncode == 1
    assert "jobs.py exists already" in refused.stderr
    assert (folder / "jobs.py").read_text() == "mine = 1\n"
    assert not (folder / "tenure.toml").exists()
    forced = tenure("init", "--force", "--json", cwd=folder)
    assert json.loads(forced.stdout)["written"] == ["jobs.py", "tenure.toml"]
    assert "jobs.py and tenure.toml exist already" in tenure("init", cwd=folder).stderr
    assert "def hello" in (folder / "jobs.py").read_text()


def test_init_can_make_the_folder(folder):
    written = tenure("init", "shop", cwd=folder)
    assert "cd shop" in written.stdout
    assert (folder / "shop" / "tenure.toml").is_file()


def test_the_app_of_the_settings_file_is_found_from_a_folder_below(folder, fresh_dsn):
    assert tenure("init", cwd=folder).returncode == 0
    (folder / "deep").mkdir()
    enqueued = tenure("enqueue", "hello", "--arg", "name=Ada", cwd=folder / "deep", TENURE_DSN=fresh_dsn)
    assert enqueued.returncode == 0, enqueued.stderr
