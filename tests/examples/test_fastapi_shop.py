"""The tests of the example shop pass, in a copy of it, as a user would run them."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest
from psycopg.conninfo import make_conninfo

from tests.docs.page_runner import as_url
from tests.processes import run_process

pytestmark = pytest.mark.slow

SHOP = Path(__file__).parents[2] / "examples" / "fastapi_shop"


def inherited() -> dict[str, str]:
    """The environment without a database."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("TENURE_", "PG", "DATABASE_URL"))}


def test_type_checkers_find_nothing(tmp_path):
    copy = tmp_path / "shop"
    shutil.copytree(SHOP, copy)
    ran = run_process([sys.executable, "-m", "mypy", "--strict", "shop", "migrations"], cwd=copy, timeout=240)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_its_tests_pass(server_dsn, tmp_path):
    copy = tmp_path / "shop"
    shutil.copytree(SHOP, copy)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    ran = run_process(command, cwd=copy, env={**inherited(), "TENURE_TEST_DSN": as_url(server_dsn)}, timeout=240)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "18 passed" in ran.stdout


def test_its_migrations_make_the_tables_of_its_models(dsn, tmp_path):
    """`alembic check` finds no difference, also not in Tenure's schema, which is in the same database."""
    copy = tmp_path / "shop"
    shutil.copytree(SHOP, copy)
    url = as_url(make_conninfo(dsn, options="-c search_path=public"))  # the role of our tests has the name of Tenure's schema
    for words in (["upgrade", "head"], ["check"]):
        env = {**inherited(), "DATABASE_URL": url}
        ran = run_process([sys.executable, "-m", "alembic", *words], cwd=copy, env=env, timeout=120)
        assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "No new upgrade operations detected" in ran.stdout + ran.stderr
