"""The fixtures in projects of users: with pytest-asyncio, anyio, pytest-django, unittest, and where they are not used."""

from __future__ import annotations

import os
import re
import sys
import textwrap

import psycopg
import pytest

from tests.docs.page_runner import as_url
from tests.processes import run_process
from tests.transactions.django_orm import skip_on_old_servers

pytestmark = pytest.mark.slow

APP = """
from tenure import Tenure

app = Tenure(log_failed_attempt="debug")

@app.job
async def greet(name: str) -> str:
    return f"hello {name}"

@app.job
def shout(name: str) -> str:
    return name.upper()
"""


@pytest.fixture
def write(tmp_path):
    def write(name, text):
        (tmp_path / name).write_text(textwrap.dedent(text))

    write("jobs.py", APP)
    return write


@pytest.fixture
def run(tmp_path, server_dsn):
    def run(*options, command=("pytest", "-q", "-p", "no:cacheprovider")):
        env = {**os.environ, "TENURE_TEST_DSN": as_url(server_dsn), "PYTHONPATH": str(tmp_path)}
        env.pop("TENURE_DSN", None)
        done = run_process([sys.executable, "-m", *command, *options], cwd=tmp_path, env=env, timeout=120)
        return done.returncode, done.stdout + done.stderr

    return run


def test_with_pytest_asyncio(write, run):
    write("pytest.ini", "[pytest]\ntenure_app = jobs:app\nasyncio_mode = strict\n")
    write(
        "test_it.py",
        """
        import pytest
        from jobs import greet, shout
        from tenure.testing import assert_enqueued, drain

        @pytest.mark.asyncio
        @pytest.mark.parametrize("n", [1, 2])
        async def test_drain(tenure_app, n):
            await greet.using(key="once").enqueue("ann")
            assert_enqueued(greet, times=1)
            [run] = await drain(tenure_app)
            assert run.output == "hello ann"

        def test_worker(tenure_worker):
            assert shout.enqueue_sync("ann").result_sync(timeout="20s") == "ANN"
        """,
    )
    code, said = run()
    assert code == 0, said
    assert "3 passed" in said


def test_in_several_processes(write, run):
    write("pytest.ini", "[pytest]\ntenure_app = jobs:app\n")
    write(
        "test_it.py",
        """
        import pytest
        from jobs import shout
        from tenure.testing import assert_enqueued, drain_sync

        @pytest.mark.parametrize("n", range(8))
        def test_it(tenure_app, n):
            shout.enqueue_sync("ann")
            assert_enqueued(shout, times=1)
            assert [run.output for run in drain_sync(tenure_app)] == ["ANN"]
        """,
    )
    code, said = run("-n", "2")
    assert code == 0, said
    assert "8 passed" in said


def test_with_a_server_that_it_starts_and_stops(write, tmp_path):
    write("pytest.ini", "[pytest]\ntenure_app = jobs:app\n")
    write(
        "test_it.py",
        """
        from jobs import shout
        from tenure.testing import drain_sync

        def test_it(tenure_app, tenure_server):
            shout.enqueue_sync("ann")
            assert [run.output for run in drain_sync(tenure_app)] == ["ANN"]
            print(tenure_server)
        """,
    )
    env = {name: value for name, value in os.environ.items() if not name.startswith(("TENURE_", "PG"))}
    done = run_process([sys.executable, "-m", "pytest", "-q", "-s"], cwd=tmp_path, env=env, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    [dsn] = re.findall(r"postgresql://\S+", done.stdout)
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(dsn)


def test_with_anyio(write, run):
    write("pytest.ini", "[pytest]\ntenure_app = jobs:app\n")
    write(
        "test_it.py",
        """
        import pytest
        from jobs import greet
        from tenure.testing import drain

        pytestmark = pytest.mark.anyio

        @pytest.fixture
        def anyio_backend():
            return "asyncio"

        async def test_drain(tenure_app):
            await greet.enqueue("ann")
            assert [run.output for run in await drain(tenure_app)] == ["hello ann"]

        async def test_result(tenure_worker):
            assert await (await greet.enqueue("ann")).result(timeout="20s") == "hello ann"
        """,
    )
    code, said = run("-p", "no:asyncio")
    assert code == 0, said
    assert "2 passed" in said


def test_with_unittest(write, run):
    write(
        "test_it.py",
        """
        import unittest
        from jobs import app, greet, shout
        from tenure.testing import assert_enqueued, bound, drain, drain_sync, temporary_database

        class Plain(unittest.TestCase):
            @classmethod
            def setUpClass(cls):
                cls.dsn = cls.enterClassContext(temporary_database())

            def setUp(self):
                self.enterContext(bound(app, self.dsn))

            def test_one(self):
                shout.enqueue_sync("ann")
                assert_enqueued(shout, args={"name": "ann"}, times=1)
                self.assertEqual([run.output for run in drain_sync(app)], ["ANN"])

            def test_two(self):
                self.assertEqual(drain_sync(app), [])

        class Async(unittest.IsolatedAsyncioTestCase):
            async def asyncSetUp(self):
                self.enterContext(bound(app, self.enterContext(temporary_database())))

            async def test_one(self):
                await greet.enqueue("ann")
                self.assertEqual([run.output for run in await drain(app)], ["hello ann"])
        """,
    )
    code, said = run(command=("unittest",))
    assert code == 0, said
    assert "Ran 3 tests" in said


def test_with_pytest_django(write, run, server_dsn):
    from psycopg.conninfo import conninfo_to_dict

    skip_on_old_servers(server_dsn)

    given = conninfo_to_dict(server_dsn)
    write(
        "project_settings.py",
        f"""
        SECRET_KEY = "x"
        INSTALLED_APPS = ["django.contrib.contenttypes"]
        USE_TZ = True
        DATABASES = {{"default": {{
            "ENGINE": "django.db.backends.postgresql", "NAME": "toolkit", "USER": {given["user"]!r},
            "HOST": {given["host"]!r}, "PORT": {given["port"]!r}, "TEST": {{"NAME": "test_toolkit_{os.getpid()}"}},
        }}}}
        """,
    )
    write("pytest.ini", "[pytest]\ntenure_app = jobs:app\nDJANGO_SETTINGS_MODULE = project_settings\n")
    write(
        "conftest.py",
        """
        import pytest
        from psycopg.conninfo import make_conninfo

        @pytest.fixture(scope="session")
        def tenure_dsn(django_db_setup):
            from django.db import connection
            settings = connection.settings_dict
            return make_conninfo(dbname=settings["NAME"], user=settings["USER"], host=settings["HOST"], port=settings["PORT"])
        """,
    )
    write(
        "test_it.py",
        """
        import pytest
        from django.db import connection, transaction
        from jobs import shout
        from tenure.testing import assert_enqueued, drain_sync, run_inline

        @pytest.mark.django_db
        def test_uncommitted(tenure_app):
            with transaction.atomic():
                shout.using(conn=connection).enqueue_sync("ann")
            assert_enqueued(shout, args={"name": "ann"}, times=1, conn=connection)
            assert_enqueued(shout, times=0)

        @pytest.mark.django_db
        def test_inline(tenure_app):
            with run_inline(tenure_app):
                assert shout.using(conn=connection).enqueue_sync("ann").result_sync() == "ANN"

        @pytest.mark.django_db(transaction=True)
        def test_committed(tenure_app):
            with transaction.atomic():
                shout.using(conn=connection).enqueue_sync("ann")
            assert [run.output for run in drain_sync(tenure_app)] == ["ANN"]
        """,
    )
    code, said = run("-p", "django")
    assert code == 0, said
    assert "3 passed" in said


def test_a_project_that_does_not_use_it_imports_nothing(write, run):
    write(
        "test_it.py",
        """
        import sys

        def test_it():
            loaded = [name for name in sys.modules if name.split(".")[0] in ("tenure", "psycopg", "pydantic")]
            assert sorted(loaded) == ["tenure", "tenure.testing", "tenure.testing.plugin", "tenure.version"]
        """,
    )
    code, said = run("-p", "no:asyncio", "-p", "no:anyio", "-p", "no:hypothesispytest", "-p", "no:xdist")
    assert code == 0, said


def test_an_app_must_be_named(write, run):
    write("test_it.py", "def test_it(tenure_app): ...")
    code, said = run()
    assert code == 1
    assert "Set `tenure_app = shop.jobs:app` in pytest's configuration" in said


def test_a_transaction_that_a_test_left_open_is_named(write, run):
    """Otherwise the next test with the same key waits for it, and cannot know why."""
    write("pytest.ini", "[pytest]\ntenure_app = jobs:app\n")
    write(
        "test_it.py",
        """
        import psycopg
        from jobs import shout
        from tenure.testing import assert_enqueued

        left_open = []

        def test_one(tenure_app, tenure_dsn):
            left_open.append(psycopg.connect(tenure_dsn, application_name="forgotten"))
            shout.using(conn=left_open[0], key="ann").enqueue_sync("ann")

        def test_two(tenure_app):
            assert_enqueued(shout, times=0)
        """,
    )
    code, said = run()
    assert code == 0, said
    assert re.search(r"test_two\n.*RuntimeWarning: session \d+ \('forgotten'\) has left a transaction open for \d+ s", said), said
    assert "end the transaction in the test that began it" in said


def test_an_app_that_is_imported_under_two_names_is_refused(write, run):
    """What the second one enqueues would go to the database of the settings."""
    write("pytest.ini", "[pytest]\ntenure_app = jobs:app\npythonpath = . ..\n")
    write("__init__.py", "")
    write(
        "test_it.py",
        """
        from importlib import import_module
        from pathlib import Path

        same = import_module(f"{Path(__file__).parent.name}.jobs")

        def test_it(tenure_app):
            same.shout.enqueue_sync("ann")
        """,
    )
    code, said = run("--import-mode=importlib")
    assert code == 1
    assert "jobs.py is imported twice, as 'jobs' and as" in said
    assert "import it under one name everywhere" in said
