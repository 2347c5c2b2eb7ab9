"""tenure workflows."""

from __future__ import annotations

import json
from typing import Any
from xml.etree import ElementTree as ET

import pytest

SVG = "{http://www.w3.org/2000/svg}"
DEFINITION = json.dumps({"workflow": True})


@pytest.fixture
def order(sql: Any) -> str:
    """A workflow that has paid and waits, without any code of it here."""
    sql("insert into tenure.kinds (name, app, definition) values ('order', 'shop', %s), ('plain', 'shop', '{}')", DEFINITION)
    [(job,)] = sql("select id::text from tenure.enqueue(%s)", '[{"kind": "order", "input": {"number": 7}}]')
    sql("select tenure.enqueue(%s)", '[{"kind": "plain"}]')
    sql(
        "update tenure.jobs set state = 'waiting', position = 0, fence = 1, run_at = now() + interval '2 hours' where id = %s",
        job,
    )
    for number, (name, what, state, output) in enumerate(
        [("pay", "step", "done", '"receipt"'), ("1/pack", "step", "done", "null"), ("rest", "sleep", "open", "null")], 1
    ):
        sql(
            "insert into tenure.steps (job_id, name, number, what, state, output, started_at, ended_at, due_at, fence)"
            " values (%s, %s, %s, %s, %s, %s, now(), case when %s = 'done' then now() end,"
            " case when %s = 'open' then now() + interval '2 hours' end, 1)",
            job, name, number, what, state, output, state, state,
        )  # fmt: skip
    sql(
        "insert into tenure.steps (job_id, name, number, what, state, output, fence)"
        " values (%s, '(status)', 0, 'status', 'open', '\"packing\"', 1)",
        job,
    )
    return job


def test_an_empty_list_is_reported_in_words(line):
    shown = line("workflows", "list")
    assert (shown.exit_code, shown.stdout) == (0, "")
    assert "no matching workflows" in shown.stderr
    assert line.json("workflows", "list") == {"workflows": []}


def test_listed_without_other_jobs(line, order):
    shown = line("workflows", "list").stdout
    assert order in shown
    assert "plain" not in shown
    assert "sleep until" in shown
    assert [job["id"] for job in line.json("workflows", "list", "--state", "waiting", "--kind", "order")["workflows"]] == [order]
    assert line.json("workflows", "list", "--state", "completed") == {"workflows": []}


def test_shown_with_its_steps(line, order):
    shown = line("workflows", "show", order).stdout
    for told in ("packing", "pay", "receipt", "  pack", "sleep", "open", "in 2 h", '{"number": 7}'):
        assert told in shown
    told = line.json("workflows", "show", order)
    assert [step["name"] for step in told["steps"]] == ["pay", "1/pack", "rest"]
    assert (told["status"], told["held"]) == ("packing", None)


def test_the_list_says_what_each_waits_for(line, order, sql):
    awaited = json.dumps({"event": "shipped", "key": ""})
    sql("update tenure.steps set what = 'wait', output = %s, due_at = now() + interval '2 days' where name = 'rest'", awaited)
    assert "event shipped (times out in 2 d)" in line("workflows", "list").stdout
    awaited = json.dumps({"event": "approve", "key": order})
    sql("update tenure.steps set what = 'event', output = %s, due_at = null where name = 'rest'", awaited)
    assert "signal approve" in line("workflows", "list").stdout
    sql("update tenure.steps set what = 'call', name = 'pick_items', output = '{}' where name = 'rest'")
    assert "child pick_items" in line("workflows", "list").stdout


def test_steps_are_shown_without_how_they_are_stored(line, order, sql):
    sql("update tenure.steps set ended_at = started_at + interval '42 microseconds' where name = 'pay'")
    received = json.dumps({"payload": "yes", "position": 2})
    sql("update tenure.steps set what = 'event', state = 'done', output = %s where name = 'rest'", received)
    sql("update tenure.steps set what = 'on_rollback' where name = '1/pack'")
    shown = line("workflows", "show", order).stdout
    assert "e-05" not in shown
    assert "position" not in shown
    assert "yes" in shown
    assert "registered" in shown


def test_drawn(line, order):
    drawn = line("workflows", "show", order, "--mermaid").stdout.splitlines()
    assert drawn[0] == "flowchart TD"
    assert '    s1["pay<br/>step, done"]' in drawn
    assert '    s3(["rest<br/>sleep, open"])' in drawn
    assert drawn[-1] == '    s3 --> finish(["waiting"])'


def test_drawn_as_svg(line, order):
    drawn = ET.fromstring(line("workflows", "show", order, "--svg", "-").stdout)
    boxes = [(box.get("class"), next(box.iter(f"{SVG}text")).text) for box in drawn.findall(f"{SVG}g")]
    assert boxes == [("start", "order"), ("done", "pay"), ("done", "pack"), ("open", "rest"), ("waiting", "waiting")]


def test_signaled(line, order, sql):
    assert "will receive signal 'approve'" in line("workflows", "signal", order, "approve", '{"by": "ann"}', "--by", "ada").stdout
    assert sql("select name, key, payload, by from tenure.events") == [("approve", order, {"by": "ann"}, "ada")]
    assert line.json("workflows", "signal", order, "approve") == {"id": order, "signal": "approve"}
    wrong = line("workflows", "signal", order, "approve", "yes")
    assert wrong.exit_code == 2
    assert "not valid JSON" in wrong.stderr


def test_a_signal_that_is_not_waited_for_is_noted(line, order, sql):
    awaited = json.dumps({"event": "approve", "key": order})
    sql("update tenure.steps set what = 'event', output = %s, due_at = null where name = 'rest'", awaited)
    sent = line("workflows", "signal", order, "aprove")
    assert sent.exit_code == 0
    assert "it does not wait for this signal now, but for: signal approve" in sent.stderr
    assert "does not wait" not in line("workflows", "signal", order, "approve").stderr


def test_canceled(line, order, sql):
    assert "is canceled" in line("workflows", "cancel", order, "--reason", "not needed", "--by", "ada").stdout
    assert sql("select state, error from tenure.history") == [("canceled", "canceled by ada: not needed")]
    assert line.json("workflows", "cancel", order) == {"id": order, "canceled": False, "rolls_back": False, "to_undo": 0}


def test_a_cancellation_says_what_will_be_undone_and_is_not_repeated(line, order, sql):
    sql("update tenure.jobs set system = '{\"undo\": true}' where id = %s", order)
    sql(
        "insert into tenure.steps (job_id, name, number, what, state, fence)"
        " values (%s, 'undo refund', 4, 'on_rollback', 'done', 1)",
        order,
    )
    assert "will undo what it registered, then be canceled: 1 undo" in line("workflows", "cancel", order).stdout
    assert "rolling back, 1 undo left" in line("workflows", "show", order).stdout
    again = line("workflows", "cancel", order)
    assert again.exit_code == 0
    assert "rolls back already, 1 undo left: --force" in again.stdout
    assert sql("select state from tenure.jobs where id = %s", order) == [("pending",)]
    assert "is canceled; not run: 1 undo" in line("workflows", "cancel", order, "--force").stdout
    assert sql("select state from tenure.history") == [("canceled",)]


def test_resumed_if_it_is_held(line, order, sql):
    refused = line("workflows", "resume", order)
    assert refused.exit_code == 1
    assert "not held" in refused.stderr
    sql('update tenure.jobs set position = -2, run_at = null, system = \'{"held": "it differs"}\' where id = %s', order)
    assert "it differs" in line("workflows", "show", order).stdout
    assert "held: a person must decide" in line("workflows", "list").stdout
    assert "no version" in line("workflows", "resume", order, "--version", "2").stderr
    sql("update tenure.kinds set definition = %s where name = 'order'", json.dumps({"workflow": True, "capability": "order@1"}))
    assert "continues" in line("workflows", "resume", order, "--version", "2").stdout
    assert sql("select state, capability, system from tenure.jobs where id = %s", order) == [("pending", "order@2", None)]


def test_forked(line, order, sql):
    told = line.json("workflows", "fork", order, "--from-step", "1/pack")
    assert sql("select name from tenure.steps where job_id = %s", told["runs_as"]) == [("pay",)]
    assert "will run again as" in line("workflows", "fork", order).stdout
    assert line("workflows", "fork", order, "--from-step", "nothing").exit_code == 1


def test_explained(line, order, sql):
    assert "it sleeps ('rest') until" in line("explain", order).stdout
    sql('update tenure.jobs set position = -2, run_at = null, system = \'{"held": "it differs"}\' where id = %s', order)
    assert "its code differs from what it has recorded: it differs" in line("explain", order).stdout


def test_reported(line, order):
    shown = line("jobs", "report", order).stdout
    assert "step 'pay' done" in shown
    assert "sleep 'rest' waits until" in shown


def test_an_event_is_sent_to_those_that_wait_for_it(line, sql):
    sent = line("workflows", "emit", "paid", '{"cents": 999}', "--key", "o-17")
    assert (sent.exit_code, sent.stdout) == (0, "event 'paid' with key 'o-17' is stored for the workflows that wait for it\n")
    assert line.json("workflows", "emit", "closed") == {"event": "closed", "key": None}
    stored = sql("select name, key, payload::text from tenure.events order by name")
    assert stored == [("closed", "", "null"), ("paid", "o-17", '{"cents": 999}')]
    wrong = line("workflows", "emit", "paid", "{cents: 1}")
    assert (wrong.exit_code, wrong.stdout) == (2, "")
