"""tenure queues, workers, leaders, stats."""

from __future__ import annotations

import pytest
from psycopg.conninfo import make_conninfo

from tests.client.stock import lay_out


def test_an_empty_list_is_reported_in_words(line):
    for words, document in [
        (["queues", "list"], {"queues": []}),
        (["workers"], {"workers": []}),
        (["leaders"], {"leaders": []}),
        (["stats"], {"live": [], "finished": [], "by_state": {}, "by_outcome": {}}),
    ]:
        shown = line(*words)
        assert (shown.exit_code, shown.stdout) == (0, "")
        assert shown.stderr.strip()
        assert line.json(*words) == document


def test_a_queue_is_paused_and_resumed(line, enqueue_job):
    enqueue_job(queue="mail")
    assert line("queues", "pause", "mail", "--reason", "the gateway is down", "--by", "ann").exit_code == 0
    shown = line("queues", "list").stdout
    assert "mail (paused)" in shown
    assert "by ann: the gateway is down" in shown
    [mail] = line.json("queues", "list")["queues"]
    assert (mail["name"], mail["paused_by"], mail["live"]) == ("mail", "ann", {"pending": 1})
    assert line.json("queues", "resume", "mail") == {"queue": "mail", "paused": False, "resumed": True}
    assert line("queues", "resume", "mail").stdout == "queue 'mail' was not paused\n"
    assert "paused" not in line("queues", "list").stdout


def test_pausing_an_unknown_queue_prints_a_note(line, enqueue_job):
    enqueue_job(queue="mail")
    assert "did you mean 'mail'?" in line("queues", "pause", "mial").stderr
    assert line("queues", "pause", "mail").stderr == ""


def test_a_pause_records_the_user_who_typed_the_command(line, enqueue_job):
    assert "@" in line.json("queues", "pause", "mail")["by"]


def test_workers_and_leaders(line, database):
    worker, gone = database.worker(queues=["mail", "default"]), database.worker()
    database.condemn(gone)
    term = database.term("stager")
    found = {one["id"]: one for one in line.json("workers")["workers"]}
    assert (found[worker]["alive"], found[worker]["queues"], found[worker]["held"]) == (True, ["mail", "default"], 0)
    assert found[gone]["alive"] is False
    shown = line("workers").stdout.splitlines()
    assert any(row.startswith(f"{worker}  alive ") and "default" in row for row in shown)
    assert any(row.startswith(f"{gone}  crashed") for row in shown)
    [leader] = line.json("leaders")["leaders"]
    assert (leader["duty"], leader["holder"], leader["holds"]) == ("stager", term.holder, True)
    assert f"stager  {term.holder}  holds" in line("leaders").stdout


def test_a_duty_that_all_supervisors_share_has_no_single_holder(line, database):
    database.term("stager")
    facts = '{"host": "web-1", "pid": 77, "strategy": "shared"}'
    database.sql("update tenure.leases set holder = '00000000-0000-0000-0000-000000000000', metadata = %s", facts)
    shown = line("leaders").stdout
    assert "stager  every supervisor  holds" in shown
    assert "00000000" not in shown
    assert "every supervisor" in line("top", "--once").stdout


def test_workers_are_drained_and_resumed_by_name_host_or_id(line, database):
    first, second = database.worker(), database.worker()
    database.sql("update tenure.workers set name = 'mail-1', host = 'moon' where id = %s", first)
    database.sql("update tenure.workers set name = 'mail-2', host = 'mars' where id = %s", second)
    for given in ("mail-1", "moon", first[:20]):
        assert line.json("workers", "drain", given) == {"draining": True, "workers": [first]}
        assert f"{first}  drained" in line("workers").stdout
        assert f"{second}  alive" in line("workers").stdout
        assert line.json("workers", "resume", given) == {"draining": False, "workers": [first]}
    assert set(line.json("workers", "drain", "moon", "mail-2", "--wait")["workers"]) == {first, second}
    assert line("workers", "resume", "moon", "mars").stdout == "2 worker processes claim jobs again\n"
    refused = line("workers", "drain", "mail-1", "mial-2")
    assert (refused.exit_code, "no living worker is named 'mial-2'" in refused.stderr) == (2, True)
    assert f"{first}  alive" in line("workers").stdout


def test_stats_count_what_is_there_and_what_was_done(line, database):
    lay_out(database, 60)
    told = line.json("stats")
    assert sum(told["by_state"].values()) == 15
    assert sum(told["by_outcome"].values()) == 45
    assert {"queue", "kind", "state", "jobs", "oldest_at"} == set(told["live"][0])
    assert {"average_wait", "average_run"} < set(told["finished"][0])
    shown = line("stats").stdout
    assert "OLDEST" in shown
    assert "WAITED" in shown


@pytest.mark.parametrize("words", [["queues", "list"], ["workers"], ["leaders"], ["stats"], ["jobs", "list"]])
def test_a_database_without_our_schema_is_reported_with_the_way_out(line, bare_dsn, words):
    refused = line(*words, "--dsn", bare_dsn)
    assert refused.exit_code == 4
    assert "tenure migrate" in refused.stderr
    assert refused.stderr.count("\n") == 1


def test_without_a_database_the_ways_out_are_named(line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refused = line("jobs", "list", TENURE_DSN=None)
    assert refused.exit_code == 3
    assert "TENURE_DSN=" in refused.stderr


@pytest.mark.slow
def test_a_database_that_is_away_is_reported_in_one_line(line, tmp_path):
    away = line("stats", "--dsn", f"host={tmp_path} dbname=nothing")
    assert away.exit_code == 1
    assert away.stderr.startswith("tenure: PostgreSQL cannot be reached")


def test_a_role_without_privileges_gets_the_way_out(line, sql, dsn):
    sql("create role cli_guest")
    try:
        refused = line("stats", "--dsn", make_conninfo(dsn, options="-c role=cli_guest"))
    finally:
        sql("drop role cli_guest")
    assert refused.exit_code == 1
    assert refused.stderr.startswith("tenure: permission denied for schema tenure; `tenure sql --roles`")
    assert refused.stderr.count("\n") == 1
