"""tenure enqueue."""

from __future__ import annotations

import asyncio
import json
import socket

import pytest

from tenure import Tenure
from tenure.cli.enqueue import _join_wait
from tenure.manager.loading import load_app


def test_the_id_and_nothing_else_goes_to_stdout(line, shop, sql):
    enqueued = line("enqueue", "send_welcome", '{"user_id": 42}', "--app", shop)
    assert enqueued.exit_code == 0
    [(job_id, queue, given, by)] = sql("select id::text, queue, input, enqueued_by from tenure.jobs")
    assert enqueued.stdout == f"{job_id}\n"
    assert (queue, given) == ("mail", {"user_id": 42})
    assert by.endswith(f"@{socket.gethostname()}")


def test_what_a_call_may_say_differently(line, shop, database):
    words = ["--queue", "slow", "--priority", "high", "--delay", "5m", "--max-attempts", 9, "--timeout", "90s"]
    told = line.json("enqueue", "send_welcome", "-a", "user_id=1", *words, "--meta", '{"a": 1}', "--key", "k", "--app", shop)
    job = database.job(told["id"])
    assert (job["queue"], job["priority"], job["state"], job["max_attempts"]) == ("slow", 75, "scheduled", 9)
    assert (job["timeout"], job["meta"], job["key"]) == (90.0, {"a": 1}, "k")


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        (["send_welcome", "-a", "user_id=7", "-a", "template=bye"], {"user_id": 7, "template": "bye"}),
        (["send_welcome", '{"user_id": 1, "template": "a"}', "--arg", "template=b=c"], {"user_id": 1, "template": "b=c"}),
        (["send_welcome", "-a", "user_id=7", "-a", "template=2024"], {"user_id": 7, "template": "2024"}),
        (["ship", '{"to": "Ann"}'], {"to": "Ann", "grams": 100}),
        (["ship", "-a", "to=77", "-a", "grams=5"], {"to": "77", "grams": 5}),
        (["drop"], {}),
    ],
)
def test_the_input_as_json_and_as_arguments(line, shop, sql, words, kept):
    assert line("enqueue", *words, "--app", shop).exit_code == 0
    assert sql("select input from tenure.jobs") == [(kept,)]


def test_the_input_from_stdin(line, shop, sql):
    assert line("enqueue", "send_welcome", "-", "--app", shop, typed='{"user_id": 5}').exit_code == 0
    assert sql("select input from tenure.jobs") == [({"user_id": 5},)]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["send_welcom", "{}"], "did you mean 'send_welcome'?"),
        (["send_welcome", '{"user_id": "x"}'], "user_id"),
        (["send_welcome"], "user_id: a required argument is missing"),
        (["send_welcome", "{user_id: 1}"], "is not valid JSON"),
        (["send_welcome", "-a", "user_id"], "NAME=VALUE"),
        (["send_welcome", "[1]", "-a", "user_id=1"], "--arg adds to a JSON object"),
        (["send_welcome", '{"user_id": 1}', "--priority", "urgent"], "priority"),
        (["send_welcome", '{"user_id": 1}', "--delay", "soon"], "which is not a duration"),
        (["send_welcome", '{"user_id": 1}', "--meta", "[]"], "is not a JSON object"),
        (["send_welcome", '{"user_id": NaN}', "--wait"], "NaN"),
        (["drop", "--queue", ""], "queue is '', but must be a name"),
        (["drop", "--key", ""], "key"),
        ([], "KIND"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(line, shop, states, words, told):
    refused = line("enqueue", *words, "--app", shop)
    assert refused.exit_code == 2
    last = refused.stderr.splitlines()[-1]
    assert last.startswith("tenure: ")
    assert told in last
    assert states() == {}


def test_a_key_that_is_taken_returns_the_job_that_owns_it(line, shop):
    first = line.json("enqueue", "drop", "--key", "k", "--app", shop)
    second = line.json("enqueue", "drop", "--key", "k", "--app", shop)
    other = line.json("enqueue", "drop", "-a", "reason=x", "--key", "k", "--app", shop)
    assert (first["existed"], second["existed"], second["same_input"], other["same_input"]) == (False, True, True, False)
    assert first["id"] == second["id"] == other["id"]
    told = line("enqueue", "drop", "--key", "k", "--app", shop)
    assert told.stdout == f"{first['id']}\n"
    assert "has the key already" in told.stderr


def test_without_a_check_it_goes_in_as_given(line, database, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    told = line.json(
        "enqueue", "of_another_language", '["any", 1]', "--no-check", "--queue", "go", "--priority", 1, "--delay", 60
    )
    job = database.job(told["id"])
    assert (job["kind"], job["input"], job["queue"], job["priority"]) == ("of_another_language", ["any", 1], "go", 1)
    assert job["state"] == "scheduled"
    keyed = [line.json("enqueue", "other", "--no-check", "--key", "k")["existed"] for _ in range(2)]
    assert keyed == [False, True]


def test_without_an_app_the_ways_out_are_named(line, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    refused = line("enqueue", "drop")
    assert refused.exit_code == 3
    assert "--app" in refused.stderr
    assert "--no-check" in refused.stderr


def test_an_app_that_cannot_be_loaded_is_reported_without_a_traceback(line, shop, tmp_path):
    (tmp_path / "sick.py").write_text("import tenure\n1 / 0\n")
    (tmp_path / "leaving.py").write_text("raise SystemExit(3)\n")
    for module, told in [
        ("sick", "ZeroDivisionError: division by zero"),
        ("leaving", "SystemExit: 3"),
        ("gone", "no module 'gone'"),
    ]:
        refused = line("enqueue", "drop", "--app", f"{module}:app")
        assert refused.exit_code == 3
        assert told in refused.stderr
        assert "Traceback" not in refused.stderr


async def waited(line, app: Tenure, *words: str):
    """What the command tells while a worker runs the app's jobs."""
    async with app.running():
        return await asyncio.to_thread(line, "enqueue", *words)


@pytest.fixture
def served(shop, dsn, tmp_path) -> Tenure:
    app = load_app(shop, str(tmp_path))
    app.configure(dsn=dsn)
    return app


async def test_waiting_gives_the_result(line, shop, served):
    told = await waited(line, served, "send_welcome", "--wait", "20s", '{"user_id": 3}', "--app", shop)
    assert (told.exit_code, told.stdout) == (0, '"welcome sent to user 3"\n')


async def test_waiting_for_a_job_that_fails(line, shop, served):
    told = await waited(line, served, "burn", "-a", "why=dry wood", "--wait", "20", "--app", shop)
    assert (told.exit_code, told.stdout) == (5, "")
    assert "ValueError: dry wood" in told.stderr
    assert "Traceback" not in told.stderr
    document = await waited(line, served, "burn", "-a", "why=dry wood", "--wait=20s", "--json", "--app", shop)
    assert document.exit_code == 5
    assert json.loads(document.stdout)["state"] == "dead_letter"


async def test_waiting_for_a_job_that_is_canceled(line, shop, served):
    told = await waited(line, served, "drop", "--wait", "20", "--app", shop)
    assert told.exit_code == 7
    assert "not needed" in told.stderr


def test_waiting_ends_when_the_time_is_up_and_the_job_continues(line, shop, states):
    told = line("enqueue", "drop", "--wait", "0.1", "--app", shop)
    assert told.exit_code == 6
    assert "tenure explain" in told.stderr
    assert states() == {"pending": 1}
    document = line("enqueue", "drop", "--wait", "100ms", "--json", "--app", shop)
    assert document.exit_code == 6
    assert json.loads(document.stdout)["state"] == "pending"


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("a --wait", "a --wait=no limit"),
        ("a --wait 5", "a --wait=5"),
        ("a --wait 1h30m {}", "a --wait=1h30m {}"),
        ("--wait a {}", "--wait=no limit a {}"),
        ("a --wait --json", "a --wait=no limit --json"),
        ("a --wait=5 6", "a --wait=5 6"),
        ("a -- --wait", "a -- --wait"),
        ("a", "a"),
    ],
)
def test_wait_takes_what_follows_only_if_it_is_a_duration(typed, meant):
    assert " ".join(_join_wait(typed.split())) == meant
