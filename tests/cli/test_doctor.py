"""tenure doctor, and tenure stats --last."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict
from uuid import uuid4

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from tenure.cli import doctor
from tenure.model.health import Probe
from tenure.store import jobs
from tests.store.database import Database
from tests.store.later_migrations import later
from tests.store.locks import meanwhile, waits_for_a_lock
from tests.store.test_health import OF_THE_TEST_SERVER

__all__ = ["later"]


def codes(line):
    shown = line("doctor", "--json")
    told = json.loads(shown.stdout)
    problems = [finding for finding in told["findings"] if finding["severity"] == "problem"]
    assert (shown.exit_code == 0) is told["healthy"] is (problems == [])
    assert all(finding["text"] and finding["way_out"] for finding in told["findings"])
    return [finding["code"] for finding in told["findings"] if finding["code"] not in OF_THE_TEST_SERVER]


def test_a_fleet_that_is_well(line, database):
    database.worker()
    database.term("stager")
    assert codes(line) == []


def test_without_workers_nothing_runs(line, database):
    database.term("stager")
    database.end_term("stager")
    assert codes(line) == ["no_workers"]
    assert line("doctor").exit_code == 1


def test_lost_workers_and_duties_without_a_leader_or_with_a_stuck_one(line, database):
    database.worker()
    database.condemn(database.worker())
    database.term("reaper")
    database.end_term("reaper")
    database.term("stager")
    database.sql(
        """update tenure.leases set acquired_at = now() - interval '5 minutes', metadata = '{"host": "box", "pid": 7,
           "next_run": "2020-01-01T00:00:00Z", "last_error": "RuntimeError: no luck"}' where name = 'stager'"""
    )
    assert codes(line) == ["lost_workers", "no_leader", "stuck_leader"]
    shown = line("doctor").stdout
    assert (
        "stager is held by box:7, which sends heartbeats, but its round is overdue (last error: RuntimeError: no luck)" in shown
    )
    [reaper, stager] = line.json("leaders")["leaders"]
    assert (reaper["stuck"], reaper["holds"], stager["stuck"], stager["holds"]) == (False, False, True, True)
    shown = line("leaders").stdout
    assert "stuck" in shown
    assert "expired" in shown


def test_what_only_the_leader_has_found_is_shown(line, database):
    """That it receives no notifications."""
    database.worker()
    database.term("doctor")
    found = [asdict(finding) for finding in Probe(not_delivering=True).findings]
    database.sql("update tenure.leases set metadata = %s::jsonb", json.dumps({"found": found}))
    assert codes(line) == ["notify_not_delivered"]


def test_rates_and_latencies_of_the_last_while(line, database):
    assert "no job was enqueued" in line("stats", "--last", "15m").stderr
    worker = database.worker()
    database.enqueue({}, {}, {"kind": "other"})
    database.run(jobs.finish(database.claim(worker).finished()))
    told = line.json("stats", "--last", "15m")
    counted = {(count["kind"], count["what"]): count["jobs"] for count in told["minutes"]}
    assert counted == {("work", "enqueued"): 2, ("other", "enqueued"): 1, ("work", "started"): 2, ("work", "completed"): 2}
    assert {(latency["measure"], latency["jobs"]) for latency in told["latencies"]} == {("waited", 2), ("ran", 2)}
    shown = line("stats", "--last", "15m").stdout.splitlines()
    assert any(row.split() == ["default", "work", "2", "2", "2", "0", "0", "0", "0"] for row in shown)
    assert line("stats", "--last", "soon").exit_code != 0


def test_a_finding_is_a_sentence_and_what_to_do(line, database):
    database.worker()
    database.sql(
        "insert into tenure.queues (name, paused_at, pause_reason) values ('mail', now() - interval '1 hour', 'a flood')"
    )
    database.enqueue({"queue": "mail"})
    shown = line("doctor").stdout.splitlines()
    place = shown.index("paused_queue: queue 'mail' is paused for 1h (a flood), and 1 job waits in it")
    assert shown[place + 1] == "    resume it: tenure queues resume mail"


def test_an_old_schema_is_a_finding_and_no_error(line, fresh_dsn, later):
    later()
    with Database(fresh_dsn) as database:
        database.sql("drop table tenure.leases cascade")
    shown = line("doctor", "--json", "--dsn", fresh_dsn)
    assert [finding["code"] for finding in json.loads(shown.stdout)["findings"]] == ["old_schema"]


def test_a_database_that_cannot_be_examined_is_reported_in_the_same_document(line, dsn, bare_dsn, database):
    """For probes, which read stdout: that nothing is there would look like a defect of the probe."""
    stranger = f"stranger_{uuid4().hex[:12]}"
    database.sql(f"create role {stranger} login")
    try:
        blocked = {
            ("unreachable", 1): make_conninfo(dsn, host="127.0.0.1", port=1),
            ("unreachable", 1, "database"): make_conninfo(dsn, dbname="no_such_database"),
            ("schema_mismatch", 4): bare_dsn,
            ("refused", 1): make_conninfo(dsn, user=stranger),
        }
        for (code, exit_code, *_), given in blocked.items():
            shown = line("doctor", "--json", "--dsn", given)
            told = json.loads(shown.stdout)
            assert (told["healthy"], [finding["code"] for finding in told["findings"]]) == (False, [code])
            assert (shown.exit_code, shown.stderr) == (exit_code, "")
            text, way_out = line("doctor", "--dsn", given).stdout.splitlines()
            assert text.startswith(f"{code}: ")
            assert way_out.strip() == told["findings"][0]["way_out"]
    finally:
        database.sql(f"drop role {stranger}")


@pytest.mark.parametrize("table", ["jobs", "workers", "migrations"])
def test_a_table_that_an_administrator_has_locked(line, database, monkeypatch, table):
    """It used to wait for the lock without end."""
    monkeypatch.setattr(doctor, "WITHIN", 2.0)
    database.worker()
    with psycopg.connect(database.connection.info.dsn, application_name="admin's psql") as admin:
        admin.execute(f"lock table tenure.{table} in access exclusive mode")
        shown = line("doctor", "--json")
        [finding] = json.loads(shown.stdout)["findings"]
        assert (shown.exit_code, finding["code"], finding["severity"]) == (1, "locked", "problem")
        pid = admin.info.backend_pid
        assert finding["text"].startswith(f"session {pid} (admin's psql, user ")
        assert f"has locked {table} against all reads" in finding["text"]
        assert finding["way_out"].endswith(f"select pg_terminate_backend({pid})")
    database.term("stager")
    assert codes(line) == []


@pytest.mark.parametrize("index", ["jobs_due", "jobs_pkey"])
def test_an_index_that_is_being_built_again_locks_its_table(line, database, monkeypatch, index):
    monkeypatch.setattr(doctor, "WITHIN", 2.0)
    with psycopg.connect(database.connection.info.dsn, application_name="admin's psql") as admin:
        admin.execute(f"reindex index tenure.{index}")
        [finding] = json.loads(line("doctor", "--json").stdout)["findings"]
        assert finding["code"] == "locked"
        assert "has locked jobs against all reads" in finding["text"]


def test_reads_wait_behind_a_session_that_waits_to_lock_a_table(line, database, monkeypatch):
    monkeypatch.setattr(doctor, "WITHIN", 2.0)
    dsn = database.connection.info.dsn
    with psycopg.connect(dsn) as reading, psycopg.connect(dsn, application_name="altering") as altering:
        reading.execute("select count(*) from tenure.jobs")
        altered = meanwhile(lambda: altering.execute("lock table tenure.jobs in access exclusive mode"))
        try:
            asyncio.run(waits_for_a_lock(database, "altering"))
            [finding] = json.loads(line("doctor", "--json").stdout)["findings"]
        finally:
            reading.rollback()
            altered()
        first, second = altering.info.backend_pid, reading.info.backend_pid
        assert finding["code"] == "locked"
        assert finding["text"].startswith(f"session {first} (altering, user ")
        assert finding["text"].endswith("waits to lock jobs against all reads")
        assert finding["way_out"].endswith(f"select pg_terminate_backend({first}), or what it waits for (session {second})")
