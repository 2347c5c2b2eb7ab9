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


def test_nothing_there_is_told_in_words(line):
    shown = line("workflows", "list")
    assert (shown.exit_code, shown.stdout) == (0, "")
    assert "no matching workflows" in shown.stderr
    assert line.json("workflows", "list") == {"workflows": []}


def test_listed_without_other_jobs(line, order):
    shown = line("workflows", "list").stdout
    assert order in shown
    assert "plain" not in shown
    assert "in 1 h" in shown
    assert [job["id"] for job in line.json("workflows", "list", "--state", "waiting", "--kind", "order")["workflows"]] == [order]
    assert line.json("workflows", "list", "--state", "completed") == {"workflows": []}


def test_shown_with_its_steps(line, order):
    shown = line("workflows", "show", order).stdout
    for told in ("packing", "pay", "receipt", "  pack", "sleep", "open", "in 1 h", '{"number": 7}'):
        assert told in shown
    told = line.json("workflows", "show", order)
    assert [step["name"] for step in told["steps"]] == ["pay", "1/pack", "rest"]
    assert (told["status"], told["held"]) == ("packing", None)


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


def test_canceled(line, order, sql):
    assert "is canceled" in line("workflows", "cancel", order, "--reason", "not needed", "--by", "ada").stdout
    assert sql("select state, error from tenure.history") == [("canceled", "canceled by ada: not needed")]
    assert line.json("workflows", "cancel", order) == {"id": order, "canceled": False}


def test_resumed_if_it_is_held(line, order, sql):
    refused = line("workflows", "resume", order)
    assert refused.exit_code == 1
    assert "not held" in refused.stderr
    sql('update tenure.jobs set position = -2, run_at = null, system = \'{"held": "it differs"}\' where id = %s', order)
    assert "it differs" in line("workflows", "show", order).stdout
    assert "held: a person must decide" in line("workflows", "list").stdout
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
