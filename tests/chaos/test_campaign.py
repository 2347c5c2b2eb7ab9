"""A short campaign, as `tenure chaos run` runs it; `make proof` runs a long one."""

from __future__ import annotations

import json
import subprocess
import sys

import psycopg
import pytest

from tenure.chaos.recorder import install
from tenure.model.errors import ConfigError
from tests.processes import run_process

SEED = 20_261
SECONDS, JOBS, FAULTS, KINDS, STEPS = 10, 1_000, 25, 10, 1_000


def chaos(*words: str, **more: object) -> subprocess.CompletedProcess[str]:
    return run_process([sys.executable, "-m", "tenure", "chaos", *words], **more)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_campaign_breaks_no_promise(tmp_path):
    ledger = tmp_path / "ledger"
    order = f"--seed {SEED} --seconds {SECONDS} --jobs {JOBS} --faults {FAULTS} --steps {STEPS} --workflows 0.1"
    order += " --workers 3 --processes 1 --json"
    done = chaos("run", *order.split(), "--out", str(ledger), timeout=500)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    output = json.loads(done.stdout)
    assert output["verdict"]["ok"]
    assert output["verdict"]["counts"]["ticks"] > SECONDS
    assert output["verdict"]["counts"]["steps"] >= STEPS
    assert output["accepted"] >= JOBS
    assert sum(output["faults"].values()) >= FAULTS
    assert len(output["faults"]) >= KINDS
    assert (output["unexpected_errors"], output["unexpected_exits"], output["unexpected_refusals"]) == ({}, [], {})

    again = chaos("check", str(ledger), "--json", timeout=120)
    assert (again.returncode, json.loads(again.stdout)) == (0, output["verdict"])


def test_a_folder_without_a_ledger_is_refused(tmp_path):
    done = chaos("check", str(tmp_path), timeout=60)
    assert done.returncode == 2
    assert "has no ledger.json" in done.stderr


def test_a_folder_in_use_is_refused(tmp_path):
    (tmp_path / "file").touch()
    done = chaos("run", "--out", str(tmp_path), timeout=60)
    assert done.returncode == 2
    assert "is not empty" in done.stderr


def test_a_database_with_jobs_is_refused(dsn, sql):
    sql('select tenure.enqueue(\'[{"kind": "precious"}]\')')
    with psycopg.connect(dsn, autocommit=True) as connection, pytest.raises(ConfigError, match="needs an empty database"):
        install(connection)
    assert sql("select count(*) from pg_namespace where nspname = 'chaos'") == [(0,)]


def test_the_recorder_is_not_installed_twice(dsn):
    with psycopg.connect(dsn, autocommit=True) as connection:
        install(connection)
        with pytest.raises(ConfigError, match="needs an empty database"):
            install(connection)


def test_the_plan_and_the_faults_are_listed():
    planned = json.loads(chaos("plan", "--seed", "3", "--seconds", "30", "--json", timeout=60).stdout)
    assert planned["seed"] == 3
    assert all(fault["at"] < 30 for fault in planned["faults"])
    known = {fault["name"] for fault in json.loads(chaos("faults", "--json", timeout=60).stdout)["faults"]}
    assert {fault["kind"] for fault in planned["faults"]} <= known
    assert len(known) >= KINDS
