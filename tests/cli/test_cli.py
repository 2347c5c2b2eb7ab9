"""The command line as a person uses it: real processes, real output, documented exit codes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from tenure.store.migrator import migrations, newest_version
from tests.processes import run_process


def tenure(*words: str, cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("TENURE_", "PG", "DATABASE_URL"))}
    return run_process([sys.executable, "-m", "tenure", *words], cwd=cwd, env={**clean, **env}, timeout=120)


def test_help_names_every_command():
    shown = tenure("--help")
    assert shown.returncode == 0
    for name in ("demo", "up", "dev", "worker", "migrate", "sql"):
        assert re.search(rf"^  {name}\s", shown.stdout, re.MULTILINE)


def test_migrate_reports_what_it_did_and_then_that_there_is_nothing_to_do(fresh_dsn):
    first = tenure("migrate", "--dsn", fresh_dsn, "--schema", "elsewhere", "--json")
    told = json.loads(first.stdout)
    assert told["version"] == newest_version()
    assert told["ran"] == [migration.label for migration in migrations()]
    assert told["ran"][0] == "0001_pre_initial"
    assert "nothing to do" in tenure("migrate", "--dsn", fresh_dsn, "--schema", "elsewhere").stdout


def test_without_a_database_a_command_names_the_ways_out(tmp_path):
    refused = tenure("migrate", cwd=tmp_path)
    assert refused.returncode == 3
    for way in ("--dsn", "TENURE_DSN", "tenure.toml", "tenure dev"):
        assert way in refused.stderr


def test_a_database_that_is_away_is_reported_in_one_line(tmp_path):
    away = tenure("migrate", "--dsn", f"host={tmp_path} dbname=nothing")
    assert away.returncode == 1
    assert away.stderr.startswith("tenure: PostgreSQL cannot be reached")
    assert "Traceback" not in away.stderr


def test_sql_prints_the_schema_and_the_roles():
    assert "create table tenure.jobs" in tenure("sql").stdout
    assert 'create table "My Jobs".jobs' in tenure("sql", "--schema", "My Jobs").stdout
    assert "grant usage on schema tenure to tenure_worker, tenure_enqueue, tenure_read;" in tenure("sql", "--roles").stdout
