"""tenure schedules."""

from __future__ import annotations

import re

import pytest


def test_an_empty_list_is_reported_in_words(line):
    shown = line("schedules", "list")
    assert (shown.exit_code, shown.stdout) == (0, "")
    assert "@app.cron" in shown.stderr
    assert line.json("schedules", "list") == {"schedules": []}


def test_made_shown_and_listed(line):
    times = [
        "--cron",
        "0 9 * * 1-5",
        "--timezone",
        "Europe/Berlin",
        "--jitter",
        "5m",
        "--catch-up",
        "all",
        "--catch-up-limit",
        "7",
    ]
    job = ["--input", '{"to": "ann"}', "--queue", "mail", "--priority", "high", "--overlap", "queue", "--by", "ada"]
    made = line("schedules", "create", "daily", "send", *times, *job)
    assert made.exit_code == 0
    first, then = made.stdout.splitlines()
    assert first == "schedule 'daily' created: send at 09:00 on Monday through Friday, Europe/Berlin"
    assert re.fullmatch(r"next  \w{3} \d{4}-\d\d-\d\d 09:00:00 CES?T  \(in .+\)", then)
    assert "daily     send  at 09:00 on Monday through Friday, Europe/Berlin  in " in line("schedules", "list").stdout
    [listed] = line.json("schedules", "list")["schedules"]
    assert (listed["name"], listed["queue"], listed["priority"], listed["jitter"]) == ("daily", "mail", 75, 300)
    shown = line("schedules", "show", "daily").stdout
    for told in ("none (not declared in code)", "all, at most 7", '{"to": "ann"}', "ada", "queue"):
        assert told in shown
    assert shown.count("next  ") == 5
    assert len(line.json("schedules", "show", "daily")["upcoming"]) == 5


def test_next_runs_in_words(line):
    line("schedules", "create", "often", "send", "--every", "90s")
    shown = line("schedules", "next", "often", "-n", "3").stdout.splitlines()
    assert shown[0] == "often runs every 1m 30s"
    assert len(shown) == 4
    told = line.json("schedules", "next", "often", "--count", "2")
    assert (told["words"], told["state"], len(told["upcoming"])) == ("every 1m 30s", "active", 2)
    line("schedules", "pause", "often")
    assert "paused" in line("schedules", "next", "often").stderr
    assert line.json("schedules", "next", "often")["upcoming"] == []


def test_changed_paused_resumed_run_and_deleted(line, sql):
    line("schedules", "create", "s", "send", "--every", "1h", "--paused")
    assert line.json("schedules", "resume", "s") == {"schedule": "s", "paused": False, "resumed": True}
    assert line("schedules", "resume", "s").stdout == "schedule 's' was not paused\n"
    changed = line.json("schedules", "change", "s", "--cron", "@daily", "--input", "[1]")
    assert (changed["cron"], changed["every"], changed["input"]) == ("@daily", None, [1])
    assert line("schedules", "pause", "s", "--reason", "the printer", "--by", "ada").exit_code == 0
    assert "by ada" in line("schedules", "show", "s").stdout
    assert "the printer" in line("schedules", "show", "s").stdout
    assert "paused" in line("schedules", "list").stdout
    ran = line.json("schedules", "run", "s", "--by", "ada")
    assert [(str(i), k, by) for i, k, by in sql("select id, kind, enqueued_by from tenure.jobs")] == [(ran["id"], "send", "ada")]
    assert "enqueued by ada" in line("schedules", "show", "s").stdout
    assert line("schedules", "delete", "s").stdout == "schedule 's' deleted\n"
    assert line.json("schedules", "list", "--all") == {"schedules": []}


def test_with_an_app_the_input_is_checked_and_the_defaults_are_the_jobs(line, shop):
    made = line.json("schedules", "create", "s", "send_welcome", "--every", "1h", "--input", '{"user_id": 7}', "--app", shop)
    assert made["queue"] == "mail"
    refused = line("schedules", "create", "t", "send_welcome", "--every", "1h", "--app", shop)
    assert refused.exit_code == 2
    assert "user_id" in refused.stderr


@pytest.mark.parametrize(
    "words", [["show"], ["next"], ["pause"], ["resume"], ["run"], ["delete"], ["change", "--cron", "@daily"]]
)
def test_one_that_is_not_there(line, words):
    verb, *rest = words
    missing = line("schedules", verb, "nobody", *rest)
    assert missing.exit_code == 8
    assert missing.stderr == "tenure: schedule 'nobody' does not exist: `tenure schedules list --all` shows all schedules\n"


def test_wrong_usage_is_reported_with_the_way_out(line):
    for words, told in [
        (["create", "s", "send", "--cron", "9 o'clock"], "has 2 fields"),
        (["create", "s", "send", "--cron", "@daily", "--timezone", "Europe/Berln"], "did you mean 'Europe/Berlin'?"),
        (["create", "s", "send"], "either a cron expression"),
        (["change", "s"], "nothing to change"),
        (["create", "s", "send", "--every", "1h", "--overlap", "never"], "skip"),
    ]:
        refused = line("schedules", *words)
        assert refused.exit_code == 2
        assert told in refused.stderr


def test_a_name_that_is_taken_or_belongs_to_code(line, sql):
    line("schedules", "create", "s", "send", "--every", "1h")
    taken = line("schedules", "create", "s", "send", "--every", "1h")
    assert (taken.exit_code, "exists already" in taken.stderr) == (1, True)
    sql("update tenure.schedules set owner = 'shop:app'")
    refused = line("schedules", "delete", "s")
    assert (refused.exit_code, "code of shop:app" in refused.stderr) == (1, True)
    assert "shop:app" in line("schedules", "list").stdout
    assert line.json("schedules", "list", "--owner", "other")["schedules"] == []
    sql("update tenure.schedules set retired_at = now()")
    assert line.json("schedules", "list")["schedules"] == []
    assert "retired" in line("schedules", "list", "--all").stdout
