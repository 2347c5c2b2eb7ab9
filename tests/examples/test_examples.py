"""Every file of examples/ runs to its end, where it asserts what it shows."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pytest
from psycopg.conninfo import conninfo_to_dict

from tests.conftest import HOME
from tests.docs.page_runner import as_url
from tests.processes import run_process

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[2] / "examples"
FILES = sorted(EXAMPLES.glob("*.py"))
FOLDERS = sorted(folder for folder in EXAMPLES.iterdir() if (folder / "README.md").is_file())
PROGRAMS = [file for file in FILES if not file.name.startswith("test_")]
TESTS = [file for file in FILES if file.name.startswith("test_")]
PATIENCE = 120  # seconds for a program


@pytest.mark.parametrize("file", PROGRAMS, ids=lambda file: file.stem)
def test_an_example_runs(file, dsn, tmp_path):
    ran = run([sys.executable, "-W", "error", file], tmp_path, TENURE_DSN=as_url(dsn))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout


@pytest.mark.parametrize("file", TESTS, ids=lambda file: file.stem)
def test_an_example_of_tests_passes(file, dsn, tmp_path):
    copied = tmp_path / file.name  # away from the settings of our own tests
    copied.write_text(file.read_text("utf-8"), "utf-8")
    ran = run([sys.executable, "-m", "pytest", copied], tmp_path, TENURE_TEST_DSN=as_url(dsn))
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_an_example_without_a_database_starts_one():
    folder = Path(os.environ[HOME]) / f"example-{uuid4().hex[:12]}"
    folder.mkdir(mode=0o711)
    ran = run([sys.executable, "-W", "error", EXAMPLES / "first_job.py"], folder)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert (folder / ".tenure").is_dir()


def test_the_readme_lists_every_example():
    listed = re.findall(r"^\| \[(.*?)\]\(\1\) \| ", (EXAMPLES / "README.md").read_text("utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted([file.name for file in FILES] + [folder.name for folder in FOLDERS])


@pytest.fixture
def django_shop(dsn, tmp_path):
    """Runs a command in a copy of the project."""
    folder = tmp_path / "shop"
    shutil.copytree(EXAMPLES / "django_shop", folder)
    given = conninfo_to_dict(dsn)
    variables = {"dbname": "PGDATABASE", "user": "PGUSER", "password": "PGPASSWORD", "host": "PGHOST", "port": "PGPORT"}
    env = {variables[name]: str(value) for name, value in given.items()}

    def ran(*command: str) -> subprocess.CompletedProcess[str]:
        done = run([sys.executable, *command], folder, **env)
        assert done.returncode == 0, done.stdout + done.stderr
        return done

    return ran


@pytest.mark.parametrize("command", [["check"], ["makemigrations", "--check", "--dry-run"], ["test", "--noinput"]], ids=" ".join)
def test_the_project_with_django_passes_its_own_checks_and_tests(command, django_shop):
    ran = django_shop("manage.py", *command)
    assert command[0] != "test" or "Ran 7 tests" in ran.stderr


def test_the_project_with_django_passes_its_tests_in_several_processes(django_shop):
    ran = django_shop("manage.py", "test", "--noinput", "--parallel", "2")
    assert "Ran 7 tests" in ran.stderr
    assert ran.stderr.count("Cloning test database") == 2


PYTEST_DJANGO = {
    "pytest.ini": """
[pytest]
DJANGO_SETTINGS_MODULE = shop.settings
python_files = tests.py test_*.py
""",
    "conftest.py": """
import pytest

from tenure.integrations.django import app


@pytest.fixture
def tenure_app_object():
    return app


@pytest.fixture(scope="session")
def tenure_dsn(django_db_setup):
    return app.settings.dsn
""",
    "test_with_fixtures.py": """
import pytest

from mails.jobs import send
from orders.jobs import ship
from orders.models import Order
from tenure.testing import assert_enqueued, drain_sync, travel


@pytest.mark.django_db
def test_in_the_transaction_of_the_test(tenure_app, client):
    client.get("/orders/")
    assert_enqueued(ship, times=1)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("n", [1, 2])
def test_committed(tenure_app, client, n):
    client.get("/orders/")
    assert [run.kind for run in drain_sync(tenure_app)] == [ship.name, send.name]
    assert Order.objects.get().state == "shipped"


@pytest.mark.django_db(transaction=True)
def test_a_later_time(tenure_app):
    send.using(delay="1h").enqueue_sync(Order.objects.create(label="one").pk, "on its way")
    assert drain_sync(tenure_app) == []
    travel(tenure_app, hours=2)
    assert [run.state for run in drain_sync(tenure_app)] == ["completed"]


@pytest.mark.django_db(transaction=True)
def test_a_worker(tenure_worker, client):
    order = Order.objects.create(label="one")
    assert ship.enqueue_sync(order.pk).result_sync(timeout="30s") is not None
    order.refresh_from_db()
    assert order.state == "shipped"
""",
}


def test_the_project_with_django_passes_its_tests_with_pytest_django(django_shop, tmp_path):
    for name, text in PYTEST_DJANGO.items():
        (tmp_path / "shop" / name).write_text(text)
    ran = django_shop("-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert "12 passed" in ran.stdout


def run(command, folder, **env):
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("TENURE_", "PG", "DATABASE_URL"))}
    return run_process([str(part) for part in command], cwd=folder, env={**inherited, **env}, timeout=PATIENCE)
