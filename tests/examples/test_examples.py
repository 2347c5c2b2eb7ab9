"""Every file of examples/ runs to its end, where it asserts what it shows."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path
from uuid import uuid4

import pytest
from psycopg.conninfo import conninfo_to_dict

from tests.conftest import HOME
from tests.docs.workshop import as_url
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


@pytest.mark.parametrize("command", [["check"], ["makemigrations", "--check", "--dry-run"], ["test", "--noinput"]], ids=" ".join)
def test_the_project_with_django_passes_its_own_checks_and_tests(command, dsn, tmp_path):
    folder = tmp_path / "shop"
    shutil.copytree(EXAMPLES / "django_shop", folder)
    given = conninfo_to_dict(dsn)
    variables = {"dbname": "PGDATABASE", "user": "PGUSER", "password": "PGPASSWORD", "host": "PGHOST", "port": "PGPORT"}
    env = {variables[name]: str(value) for name, value in given.items()}
    ran = run([sys.executable, "manage.py", *command], folder, **env)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert command[0] != "test" or "Ran 7 tests" in ran.stderr


def run(command, folder, **env):
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("TENURE_", "PG", "DATABASE_URL"))}
    return run_process([str(part) for part in command], cwd=folder, env={**inherited, **env}, timeout=PATIENCE)
