"""tenure migrate and tenure sql, and `tenure up` with an account that may not migrate."""

from __future__ import annotations

import json
import signal
import sys

import pytest
from psycopg.conninfo import make_conninfo

from tenure.store.migrator import migrations, newest_version, roles_sql
from tests.cli.started import started
from tests.store.database import Database
from tests.store.later_migrations import later, later_label
from tests.store.test_role_upgrades import of, run_script, server, shop
from tests.upgrades.later_code import later_code

__all__ = ["later", "server", "shop"]

JOBS = "from tenure import Tenure\napp = Tenure()\n@app.job\nasync def work() -> None: ...\n"


@pytest.fixture
def shop_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path
    sys.modules.pop("somewhere", None)


def test_a_dry_run_and_the_status_of_an_empty_database(line, bare_dsn, later):
    later()
    dry = line("migrate", "--dry-run", "--dsn", bare_dsn)
    assert dry.stdout.splitlines()[0] == "would run 0001_pre_initial"
    assert line.json("migrate", "--dry-run", "--phase", "post", "--dsn", bare_dsn)["would_run"][-1] == later_label("post_late")
    found = line.json("migrate", "--status", "--dsn", bare_dsn)
    assert (found["version"], found["needed"]) == (None, newest_version())
    assert found["pending"]["pre"] + found["pending"]["post"] == [migration.label for migration in migrations()]
    with Database(bare_dsn) as database:
        assert database.sql("select nspname from pg_namespace where nspname = 'tenure'") == []


def test_the_status_of_a_database_between_the_phases(line, bare_dsn, later):
    later()
    assert line("migrate", "--phase", "pre", "--dsn", bare_dsn).exit_code == 0
    found = line.json("migrate", "--status", "--dsn", bare_dsn)
    assert (found["version"], found["pending"]["pre"]) == (newest_version(), [])
    shown = line("migrate", "--status", "--dsn", bare_dsn)
    assert any(row.split()[:3] == [later_label("post_late"), "post", "pending"] for row in shown.stdout.splitlines())
    assert "0 pre and" in shown.stderr


def test_the_app_may_name_the_database(line, bare_dsn, shop_folder):
    (shop_folder / "somewhere.py").write_text(f"from tenure import Tenure\napp = Tenure({bare_dsn!r}, schema='of_the_app')\n")
    told = line.json("migrate", "--app", "somewhere:app", TENURE_DSN=None)
    assert len(told["ran"]) == len(migrations())
    with Database(bare_dsn) as database:
        assert database.sql("select count(*) from of_the_app.jobs") == [(0,)]


def test_the_second_phase_is_refused_while_old_workers_live(line, bare_dsn, later):
    later()
    assert line("migrate", "--phase", "pre", "--dsn", bare_dsn).exit_code == 0
    with Database(bare_dsn) as database:
        database.worker()
        database.sql("update tenure.workers set schema_version = 0")
    refused = line("migrate", "--phase", "post", "--dsn", bare_dsn)
    assert refused.exit_code == 1
    assert "still run code of an older version" in refused.stderr
    told = line.json("migrate", "--dsn", bare_dsn)
    assert told["ran"] == []
    assert len(told["warnings"]) == 1
    assert line("migrate", "--phase", "post", "--force", "--dsn", bare_dsn).exit_code == 0


def test_sql_prints_a_phase_a_part_and_no_transaction_of_its_own(line, later):
    later()
    assert "drop index tenure.jobs_late" not in line("sql", "--phase", "pre").stdout
    assert "drop index tenure.jobs_late" in line("sql", "--phase", "post").stdout
    assert "begin;" not in line("sql", "--phase", "post", "--no-transaction").stdout
    assert "grant usage" not in line("sql", "--roles", "--part", "create").stdout
    assert "create role" not in line("sql", "--roles", "--part", "grants").stdout
    assert line("sql", "--part", "grants").exit_code == 2


@pytest.mark.slow
def test_workers_are_started_by_an_account_that_may_not_migrate(shop, server, tmp_path):
    """What systemd units, compose and the image do."""
    (tmp_path / "jobs.py").write_text(JOBS)
    later_version = later_code(tmp_path / "later")
    assert later_version.tenure("migrate", "--phase", "pre", "--dsn", of(shop, "shop_owner").dsn).returncode == 0
    run_script(shop, "shop_admin", roles_sql("tenure", "create"))
    run_script(shop, "shop_owner", roles_sql("tenure", "grants"))
    server.sql("grant tenure_worker to shop_worker")
    with Database(shop) as database:
        database.sql("revoke insert on tenure.migrations from tenure_worker")
    environment = {"TENURE_DSN": make_conninfo(shop, user="shop_worker"), **later_version.environment}
    for left in ("post", None):
        with started(tmp_path, "up", "--app", "jobs:app", "--processes", "1", **environment) as up:
            assert up.says("ready: ", within=60), up.said
            assert ("not migrated by this account" in up.said) is (left == "post")
            up.signal(signal.SIGTERM)
            assert up.ends(within=40) == 0, up.said
        assert later_version.tenure("migrate", "--dsn", of(shop, "shop_owner").dsn).returncode == 0
    with Database(shop) as database:
        database.sql("update tenure.migrations set version = version - 100")
    with started(tmp_path, "up", "--app", "jobs:app", **environment) as up:
        assert up.ends(within=40) == 4, up.said
        assert "run `tenure migrate`" in up.said


def test_roles_can_be_brought_up_to_date_with_the_schema(line, shop, server):
    told = line("migrate", "--roles", "--dsn", shop)
    assert told.exit_code == 0, told.output
    assert server.sql("select count(*) from pg_roles where rolname ~ '^tenure_'") == [(3,)]


def test_an_owner_who_may_not_create_roles_is_shown_who_runs_what(line, shop):
    refused = line("migrate", "--roles", "--dsn", of(shop, "shop_owner").dsn)
    assert refused.exit_code == 1
    assert "role tenure_worker is missing" in refused.stderr
    assert "--part create" in refused.stderr
    assert "--part grants" in refused.stderr


def test_errors_are_json_where_a_program_reads(line, tmp_path):
    away = line("migrate", "--json", "--dsn", f"host={tmp_path} dbname=nothing")
    told = json.loads(away.stderr)["error"]
    assert (told["type"], told["exit_code"], away.exit_code) == ("StoreUnavailable", 1, 1)
    for words, code in ((["jobs", "list", "--json", "--state", "x"], 2), (["jobs", "show", "--json", "0" * 32], 8)):
        refused = line(*words)
        assert (json.loads(refused.stderr)["error"]["exit_code"], refused.exit_code) == (code, code)
