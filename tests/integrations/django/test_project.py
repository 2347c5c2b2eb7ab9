"""A project's commands, checks, migrations and its own tests."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict

import tenure
from tenure.store.migration_files import newest_version
from tenure.testing import temporary_database
from tests.integrations.django.conftest import FOLDER
from tests.processes import run_process

pytestmark = pytest.mark.slow

SOURCE = Path(tenure.__file__).parent


def test_the_projects_own_tests_run_on_the_test_database_and_leave_the_real_one_alone(shop, sql):
    ran = shop.manage("test", "--noinput", "orders")
    assert re.search(r"Ran [12]\d tests", ran.stderr)
    assert sql("select count(*) from tenure.all_jobs") == [(0,)]
    assert sql("select count(*) from pg_database where datname = %s", shop.env["SHOP_TEST_NAME"]) == [(0,)]


WITHOUT_DATABASE = """
import unittest
from django.test import SimpleTestCase
from orders.jobs import ship
from tenure import ConfigError
from tenure.integrations.django import app
from tenure.testing import Recorder, drain_sync, run_inline

class Refused:
    def test_it(self):
        for use in (lambda: ship.enqueue_sync(1), lambda: app.client().list_sync(), lambda: drain_sync(app)):
            with self.assertRaisesRegex(ConfigError, "the real one, .* make it a django.test.TestCase|may contain real jobs"):
                use()
        with Recorder(app) as recorder:
            ship.enqueue_sync(1)
        recorder.assert_enqueued(ship, times=1)

class Simple(Refused, SimpleTestCase): ...
class Plain(Refused, unittest.TestCase): ...
"""


@pytest.mark.parametrize(
    "runner", [[str(FOLDER / "manage.py"), "test"], ["-m", "pytest", "-p", "django", "-p", "no:cacheprovider"]]
)
def test_tests_for_which_django_creates_no_database_cannot_reach_the_real_one(shop, sql, runner):
    """Of a run without a single test that uses the database, neither Django nor pytest-django makes a test database."""
    (shop.folder / "test_without.py").write_text(WITHOUT_DATABASE)
    ran = run_process([sys.executable, *runner], cwd=shop.folder, env={**os.environ, **shop.env}, timeout=120)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert re.search("Ran 2 tests|2 passed", ran.stdout + ran.stderr)
    assert sql("select count(*) from tenure.all_jobs") == [(0,)]


def test_migrate_creates_the_schema_before_migrations_that_need_it(shop, sql):
    assert sql("select count(*) from uses_tenure") == [(1,)]
    assert "No migrations to apply" in shop.manage("migrate").stdout
    assert "No changes detected" in shop.manage("makemigrations", "--check", "--dry-run").stdout


def test_the_newest_django_migration_is_that_of_the_newest_schema():
    """A release with a newer schema needs a Django migration of its own, so that `migrate --check` notices it."""
    [*_, newest] = sorted((SOURCE / "integrations" / "django" / "migrations").glob("0*.py"))
    assert re.findall(r"MigrateTenure\(version=(\d+)\)", newest.read_text("utf-8")) == [str(newest_version())]


def test_sqlmigrate_prints_the_schema_without_a_transaction_of_its_own(shop):
    printed = shop.manage("sqlmigrate", "tenure", "0001").stdout
    assert "create table tenure.jobs" in printed
    assert "begin;" not in printed


def test_the_command_line_uses_the_database_and_the_jobs_of_the_project(shop, sql):
    listed = json.loads(shop.manage("tenure", "config", "--json").stdout)
    assert "shop" in str(listed)
    shop.manage("tenure", "enqueue", "mails.send", "--arg", "order_id=3")
    assert sql("select kind, queue, input from tenure.jobs") == [("mails.send", "mail", {"order_id": 3})]
    assert "mails.send" in shop.manage("tenure", "jobs", "list").stdout
    assert shop.manage("tenure", "jobs", "show", "no-such-id", check=False).returncode != 0


def test_django_s_own_flags_are_not_passed_on(shop):
    shop.env["DJANGO_SETTINGS_MODULE"] = "nonsense"
    assert "version" in shop.manage("tenure", "--settings", "shop.settings", "--version").stdout
    assert "no jobs" in shop.manage("tenure", "jobs", "list", f"--pythonpath={FOLDER}", "--settings=shop.settings").stderr


def test_call_command_runs_it_and_raises_what_fails(shop):
    program = """
from django.core.management import CommandError, call_command
call_command("tenure", "migrate", "--status")
try:
    call_command("tenure", "jobs", "show", "nonsense")
except CommandError as error:
    print("failed", error.returncode)
"""
    printed = shop.run(program)
    assert "0001_pre_initial" in printed
    assert "failed" in printed


def test_mistakes_in_the_settings_are_reported_by_the_checks(shop):
    wrong = {"DATABASE": "jobs", "RETENTION_SECOND": 1, "DSN": "postgresql://"}
    told = shop.varied(TENURE=wrong).manage("check", check=False)
    assert told.returncode == 1
    assert "DATABASE is 'jobs', but DATABASES has no such alias: use one of 'default'" in told.stderr
    assert "unknown setting 'RETENTION_SECOND'; did you mean 'RETENTION_SECONDS'?" in told.stderr
    assert "'DSN' follows from DATABASES" in told.stderr
    told = shop.varied(TENURE={"WORKERS_CONCURRENCY": 0}).manage("check", check=False)
    assert "workers.concurrency must be at least 1" in told.stderr
    told = shop.varied(database={"ENGINE": "django.db.backends.sqlite3"}).manage("check", check=False)
    assert "the database 'default' is on sqlite, but Tenure needs PostgreSQL" in told.stderr
    told = shop.varied(database={"ENGINE": "django.db.backends.sqlite3"}).manage("tenure", "worker", check=False)
    assert told.returncode == 3
    assert told.stderr.startswith("CommandError: the database 'default' is on sqlite")


def test_jobs_in_another_database_than_the_orm_s_are_warned_of_unless_this_is_intended(shop):
    given = conninfo_to_dict(shop.dsn)
    jobs = {"ENGINE": "django.db.backends.postgresql", "NAME": given.pop("dbname"), "OPTIONS": given}
    databases = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}, "jobs": jobs}
    told = shop.varied(DATABASES=databases, TENURE={"DATABASE": "jobs"}).manage("check").stderr
    assert "(tenure.W001) jobs are in the database 'jobs', so those that are enqueued inside atomic() on 'default'" in told
    intended = {"DATABASE": "jobs", "ENQUEUE_IN_TRANSACTION": True}
    assert "tenure.W001" not in shop.varied(DATABASES=databases, TENURE=intended).manage("check").stderr


def test_tasks_that_no_worker_would_find_are_warned_of(shop):
    """They are enqueued by web processes, and stay pending."""
    # Set after the start, because the backend and the tasks need Django 6.
    program = """
from django.conf import settings
from django.core.management import call_command
settings.TASKS = {"default": {"BACKEND": "tenure.integrations.django.task_backend.TenureBackend"}}
call_command("check")
"""
    told = "workers do not run the tasks in parcels.tasks, unless a module in TENURE['JOB_MODULES'] (jobs) imports them"
    assert told in shop.varied(apps=["parcels"], TENURE={"JOB_MODULES": ["jobs"]}).run(program, check=False)
    assert "tenure.W002" not in shop.varied(apps=["parcels"], TENURE={}).run(program, check=False)
    assert "tenure.W002" not in shop.varied(TENURE={"JOB_MODULES": ["jobs"]}).run(program, check=False)


def test_settings_of_the_project_apply_to_workers_and_the_environment_has_precedence(shop, sql):
    varied = shop.varied(TENURE={"WORKERS_CONCURRENCY": 3, "WORKERS_NAME": "shop-1"})
    assert "3 shop-1" in varied.run(
        "from tenure.integrations.django import app; w = app.settings.workers; print(w.concurrency, w.name)"
    )
    varied.env["TENURE_WORKERS_CONCURRENCY"] = "4"
    assert "4 shop-1" in varied.run(
        "from tenure.integrations.django import app; w = app.settings.workers; print(w.concurrency, w.name)"
    )


def test_commands_have_a_table_of_routes_from_the_settings(shop, sql):
    varied = shop.varied(TENURE={"ROUTES": {"mails.*": {"queue": "letters", "priority": "high"}}})
    varied.manage("tenure", "enqueue", "mails.send", "--arg", "order_id=3")
    assert sql("select queue, priority from tenure.jobs") == [("letters", 75)]


def test_an_app_that_was_bound_to_a_test_database_follows_django_again(shop, server_dsn):
    """Otherwise a later test could write into the database that the app had before."""
    with temporary_database(server_dsn) as dsn:
        shop.env["OTHER_DSN"] = dsn
        shop.run("""
import os
from django.db import connections
from tenure.integrations.django import app
from tenure.testing import bound
real = connections.settings["default"]["NAME"]
with bound(app, os.environ["OTHER_DSN"]):
    assert "/tenure_test_" in app.settings.dsn, app.settings.dsn
assert f"dbname={real} " in app.settings.dsn + " ", app.settings.dsn
connections.settings["default"]["NAME"] = "test_of_django"
assert "dbname=test_of_django" in app.settings.dsn, app.settings.dsn
""")


def test_the_role_that_django_assumes_is_ours_too(shop, sql):
    sql("drop role if exists shop_app")
    sql("create role shop_app")
    sql("grant shop_app to current_user")
    program = "from tenure.integrations.django import app; print(app.settings.dsn)"
    assert "-c role=shop_app" in shop.varied(database={"OPTIONS": {"assume_role": "shop_app"}}).run(program)
    sql("drop role shop_app")
