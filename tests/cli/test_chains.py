"""tenure chains list, show, complete, delete."""

from __future__ import annotations

import json
from uuid import uuid4
from xml.etree import ElementTree as ET

import pytest

SVG = "{http://www.w3.org/2000/svg}"
UNKNOWN = "01890000-0000-7000-8000-000000000000"


@pytest.fixture
def chain(sql):
    """A chain of two links, the second of which waits for another chain. Gives the ids of all three."""
    first, second, blocker = (str(uuid4()) for _ in range(3))
    enqueue = "select tenure.enqueue(%s)"
    sql(enqueue, json.dumps([{"id": blocker, "kind": "price"}]))
    finished = """
        insert into tenure.history (id, fence, enqueued_at, started_at, finished_at, attempt, max_attempts, priority, crashes,
               state, kind, queue, input, next_id)
        values (%s, 1, now() - interval '1 minute', now() - interval '2 s', now(), 1, 3, 50, 0,
                'completed', 'order', 'default', '{}', %s)"""
    sql(finished, first, second)
    link = {"id": second, "kind": "invoice", "chain": first, "parent": first, "after": [blocker], "system": {"link": 2}}
    sql(enqueue, json.dumps([link]))
    return first, second, blocker


def test_a_chain_is_shown_as_a_tree(line, chain):
    first, second, blocker = chain
    shown = line("chains", "show", second).stdout
    assert shown.splitlines()[0] == f"chain {first}  blocked"
    assert f"├─ 1  order  completed  {first}  2.00 s" in shown
    assert f"└─ 2  invoice  blocked  {second}" in shown
    assert f"      after {blocker}  has not ended" in shown
    told = line.json("chains", "show", first)
    assert [link["job"]["kind"] for link in told["links"]] == ["order", "invoice"]
    assert told["links"][1]["blockers"] == [{"chain_id": blocker, "ended": False, "kind": None, "state": None}]


def test_a_chain_is_drawn_for_mermaid(line, chain):
    first, second, blocker = (job_id.replace("-", "") for job_id in chain)
    drawn = line("chains", "show", chain[0], "--mermaid").stdout
    assert drawn.startswith("flowchart LR\n")
    assert f'j{first}["order<br/>completed"]:::completed' in drawn
    assert f"j{first} --> j{second}" in drawn
    assert f"j{blocker} -.-> j{second}" in drawn


def test_a_chain_is_drawn_as_svg(line, chain, tmp_path):
    first, second, blocker = chain
    line("chains", "show", first, "--svg", str(tmp_path / "chain.svg"))
    drawn = ET.fromstring((tmp_path / "chain.svg").read_text())
    assert drawn.findtext(f"{SVG}title") == f"chain {first}, blocked"
    boxes = {box.get("class"): [text.text for text in box.iter(f"{SVG}text")] for box in drawn.findall(f"{SVG}g")}
    assert boxes["completed"][0] == "1  order"
    assert boxes["blocked"][0] == "2  invoice"
    assert boxes["not_ended"][0] == "chain"
    assert [path.get("class") for path in drawn.findall(f"{SVG}path")] == ["dashed", None]
    assert line("chains", "show", second, "--svg", "-").stdout == (tmp_path / "chain.svg").read_text()
    assert blocker[:20] in boxes["not_ended"][1]


def test_chains_are_listed_by_their_first_job_with_the_state_of_the_last(line, chain):
    first, _, blocker = chain
    listed = line.json("chains", "list")["chains"]
    assert {(one["id"], one["kind"], one["state"], one["links"]) for one in listed} == {
        (first, "order", "blocked", 2),
        (blocker, "price", "pending", 1),
    }
    assert first in line("chains", "list", "--state", "blocked").stdout
    assert blocker not in line("chains", "list", "--state", "blocked").stdout
    assert "no matching chains" in line("chains", "list", "--kind", "nothing").stderr


def test_a_chain_is_completed_by_a_person(line, chain, sql):
    first, second, _ = chain
    done = line("chains", "complete", first, "--output", '{"ok": true}', "--by", "ann")
    assert done.stdout == f"completed chain {first} with job {second}\n"
    assert sql("select output from tenure.history where id = %s", second) == [({"ok": True},)]
    again = line("chains", "complete", first)
    assert again.exit_code == 1
    assert "has ended" in again.stderr


def test_a_chain_that_others_wait_for_is_deleted_only_with_them(line, chain, sql):
    _, second, blocker = chain
    refused = line("chains", "delete", blocker)
    assert refused.exit_code == 1
    assert second in refused.stderr
    assert "--cascade" in refused.stderr
    assert line("chains", "delete", blocker, "--cascade").stdout == "deleted 1 chain\n"
    assert sql("select count(*) from tenure.all_jobs") == [(0,)]
    assert line("chains", "show", UNKNOWN).exit_code == 8


def test_explain_names_what_is_missing_and_the_command_that_shows_it(line, chain):
    _, second, blocker = chain
    told = line("explain", second).stdout
    assert f"it waits for 1 chain (0 of 1 have ended): {blocker} (price, pending)" in told
    assert f"tenure chains show {second}" in told
