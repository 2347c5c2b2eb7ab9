"""A Django project beside the tests, in processes of its own: Django has one set of settings per process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from tests.processes import WorkerProcess, run_process

FOLDER = Path(__file__).parent / "project"
WORKER_APP = "tenure.integrations.django.worker:app"


class Shop:
    """The project on a database. `database` and `settings` vary its settings."""

    def __init__(
        self, dsn: str, folder: Path, *, database: dict[str, Any] | None = None, apps: list[str] | None = None, **settings: Any
    ) -> None:
        self.dsn = dsn
        self.folder = folder
        self.env = {
            "SHOP_DSN": dsn,
            "SHOP_DATABASE": json.dumps(database or {}),
            "SHOP_APPS": json.dumps(apps or []),
            "SHOP_SETTINGS": json.dumps(settings),
            "SHOP_TEST_NAME": f"test_shop_{uuid4().hex[:12]}",
            "DJANGO_SETTINGS_MODULE": "shop.settings",
            "PYTHONPATH": os.pathsep.join(filter(None, [str(FOLDER), os.environ.get("PYTHONPATH")])),
        }

    def varied(self, **variation: Any) -> Shop:
        return Shop(self.dsn, self.folder, **variation)

    def manage(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-W", "error::DeprecationWarning:tenure", str(FOLDER / "manage.py"), *arguments]
        done = run_process(command, cwd=self.folder, env={**os.environ, **self.env}, timeout=120)
        assert not check or done.returncode == 0, f"manage.py {' '.join(arguments)}\n{done.stdout}\n{done.stderr}"
        return done

    def run(self, code: str, check: bool = True) -> str:
        """Runs code in the project, with Django set up; returns what it printed."""
        program = f"import django\ndjango.setup()\n{code}"
        done = run_process(
            [sys.executable, "-c", program], cwd=self.folder, env={**os.environ, **self.env}, timeout=120, check=False
        )
        assert not check or done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        return done.stdout if check else done.stdout + done.stderr

    @contextmanager
    def worker(self, *options: str) -> Iterator[WorkerProcess]:
        worker = WorkerProcess(self.folder, self.dsn, *options, app=WORKER_APP, env=self.env)
        try:
            yield worker
        except BaseException:
            sys.stdout.write(worker.said)  # shown with the failure
            raise
        finally:
            worker.kill()


@pytest.fixture(scope="session")
def shop_template(server_dsn: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A database that `manage.py migrate` has prepared; copied for each test."""
    name = f"shop_template_{uuid4().hex[:12]}"
    _admin(server_dsn, f"create database {name}")
    Shop(make_conninfo(server_dsn, dbname=name), tmp_path_factory.mktemp("shop")).manage("migrate")
    yield name
    _admin(server_dsn, f"drop database {name} with (force)")


@pytest.fixture
def dsn(server_dsn: str, shop_template: str) -> Iterator[str]:
    name = f"shop_{uuid4().hex[:12]}"
    _admin(server_dsn, f"create database {name} template {shop_template}")
    yield make_conninfo(server_dsn, dbname=name)
    _admin(server_dsn, f"drop database {name} with (force)")


@pytest.fixture
def shop(dsn: str, tmp_path: Path) -> Shop:
    return Shop(dsn, tmp_path)


def _admin(dsn: str, statement: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(statement)
