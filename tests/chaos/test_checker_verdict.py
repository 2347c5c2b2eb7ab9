"""What a verdict contains: what held, what was broken, and the shortest history of each violation."""

from __future__ import annotations

import json

from tenure.chaos.invariants import INVARIANTS
from tests.chaos.builder import LedgerBuilder, Row


def lost(builder: LedgerBuilder, attempts: int) -> Row:
    """An accepted job that disappears without a request, after this many failed attempts."""
    row = builder.enqueue(max_attempts=9)
    for _ in range(attempts):
        builder.claim(row)
        builder.start(row)
        builder.fail(row)
        builder.promote(row)
    builder.remove(row)
    return row


def test_the_table_numbers_all_invariants():
    assert [invariant.number for invariant in INVARIANTS] == [f"I{number}" for number in range(27)]
    assert all(invariant.name and invariant.promise for invariant in INVARIANTS)


def test_a_good_verdict(tmp_path):
    builder = LedgerBuilder()
    builder.done()
    builder.fault("kill_child")
    builder.fault("server_kill", done=False)
    verdict = builder.check(tmp_path)
    assert verdict.ok
    assert not verdict.violations
    assert not verdict.histories
    text = verdict.as_text().splitlines()
    assert text[0] == "seed 7: all 27 invariants held"
    counts = "1 jobs, 4 row changes, 2 handler lines, 0 scheduled times, 0 workflow steps, 1 client calls"
    assert text[1] == f"{counts}, 1 faults (kill_child 1)"
    assert "  I16  every change is audited                        held" in text


def test_what_was_counted(tmp_path):
    builder = LedgerBuilder()
    builder.done()
    builder.result(builder.done())
    builder.fault("kill_child")
    builder.fault("kill_child")
    builder.fault("cut", done=False)
    counts = builder.check(tmp_path).counts
    assert (counts.jobs, counts.moves, counts.runs, counts.calls) == (2, 8, 4, 3)
    assert (counts.faults, counts.undone) == ({"kill_child": 2}, {"cut": 1})


def test_the_shortest_history_is_shown(tmp_path):
    builder = LedgerBuilder()
    lost(builder, 2)
    short = lost(builder, 1)
    lost(builder, 2)
    verdict = builder.check(tmp_path)
    history = verdict.histories["I1"]
    assert history.subject == f"job {short.id}"
    assert verdict.violations[0].job == short.id


def test_a_history_is_in_the_order_of_time_with_the_faults_of_that_time(tmp_path):
    builder = LedgerBuilder()
    builder.fault("cut")
    row = builder.enqueue()
    builder.claim(row)
    builder.start(row)
    builder.fault("kill_child", 0.5)
    builder.remove(row)
    builder.call("cancel", job=row.id, reply=False)
    builder.fault("slow")
    history = builder.check(tmp_path).histories["I1"]
    assert [line.what.split()[0] for line in history.lines] == ["client", "jobs", "jobs", "handler", "fault", "jobs", "client"]
    times = [line.at for line in history.lines]
    assert times == sorted(times)
    assert 0 < times[0] < 1
    assert history.lines[4].what == "fault     kill_child (target, 0.500 s)"


def test_a_history_ends_with_the_state_at_the_end(tmp_path):
    builder = LedgerBuilder()
    row = builder.done("atomic")
    builder.effect(row)
    builder.effect(row)
    history = builder.check(tmp_path).histories["I17"]
    assert [line.what.split(" (")[0] for line in history.lines if line.at is None] == [
        "completed",
        "a row in effects",
        "a row in effects",
    ]


def test_other_jobs_of_the_same_request_are_part_of_the_history(tmp_path):
    builder = LedgerBuilder()
    row = builder.done()
    second = builder.finish(builder.insert("second", row.n))
    text = [line.what for line in builder.check(tmp_path).histories["I2"].lines]
    assert any(what.startswith(f"job {row.id}: history") for what in text)
    assert any("jobs      new -> pending" in what for what in text)
    assert not any(second.id in what and what.startswith("job ") for what in text)


def test_the_history_of_a_request_and_of_a_duty(tmp_path):
    builder = LedgerBuilder()
    builder.done()
    builder.order(builder.request("ordered", answer="unknown"))
    builder.lead("a", 2)
    builder.lead("b", 1)
    histories = builder.check(tmp_path).histories
    assert [line.what.split()[0] for line in histories["I18"].lines] == ["client", "a"]
    assert [line.what for line in histories["I11"].lines] == [
        "leader    None, term None -> a, term 2 (change 1)",
        "leader    a, term 2 -> b, term 1 (change 2)",
    ]


def test_all_violations_are_counted_and_some_are_listed(tmp_path):
    builder = LedgerBuilder()
    for _ in range(25):
        lost(builder, 0)
    builder.done()
    verdict = builder.check(tmp_path)
    totals = {invariant.number: found for invariant, found in verdict.totals.items() if found}
    assert totals == {"I1": 25, "I7": 25}
    assert [violation.number for violation in verdict.violations] == ["I1"] * 20 + ["I7"] * 20
    text = verdict.as_text()
    assert text.startswith("seed 7: 2 of 27 invariants broken, 50 violations\n")
    assert "  and 5 more\n" in text


def test_what_concerns_the_whole_campaign_has_no_history(tmp_path):
    builder = LedgerBuilder()
    builder.done()
    builder.set(drained=False)
    verdict = builder.check(tmp_path)
    assert "  the campaign ended before all work was done\n" in verdict.as_text()
    assert not verdict.histories


def test_a_verdict_as_json(tmp_path):
    builder = LedgerBuilder()
    builder.done()
    lost(builder, 0)
    document = json.loads(json.dumps(builder.check(tmp_path).as_json()))
    assert document["ok"] is False
    assert document["counts"]["jobs"] == 2
    assert document["invariants"][1] | {"promise": ""} == {
        "number": "I1", "name": "no accepted job is lost", "promise": "", "verdict": "broken", "violations": 1,
    }  # fmt: skip
    assert document["violations"][0] | {"what": ""} == {
        "number": "I1",
        "what": "",
        "job": "job-2",
        "n": None,
        "duty": None,
        "schedule": None,
        "planned": None,
    }
    assert document["histories"]["I1"]["subject"] == "job job-2"


def test_a_long_history_shows_some_of_its_faults(tmp_path):
    builder = LedgerBuilder()
    row = builder.enqueue()
    for _ in range(100):
        builder.fault("kill_child")
    builder.finish(row)
    builder.remove(row)
    lines = [line.what for line in builder.check(tmp_path).histories["I1"].lines]
    assert sum(what.startswith("fault") for what in lines) == 40
    assert "and 60 more faults" in lines
