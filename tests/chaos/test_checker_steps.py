"""I12: steps of workflows are recorded once, and all runs see what is recorded."""

from __future__ import annotations

from typing import Any

import pytest

from tests.chaos.builder import LedgerBuilder, Row

KIND = "workflow_sequence"


def output(builder: LedgerBuilder, row: Row, steps: int, last: str) -> dict[str, Any]:
    return builder.output_of(row, steps=steps, last=last)


def begun(kind: str = KIND) -> tuple[LedgerBuilder, Row]:
    builder = LedgerBuilder()
    row = builder.enqueue(kind)
    builder.claim(row)
    builder.start(row)
    return builder, row


def again(builder: LedgerBuilder, row: Row, worker: str = "w2") -> None:
    """The process died, and another worker continues the workflow."""
    builder.crash(row)
    builder.claim(row, worker)
    builder.start(row)


def completed(builder: LedgerBuilder, row: Row, steps: int, last: str) -> None:
    builder.complete(row, output=output(builder, row, steps, last))


# Sound


def test_a_workflow_that_is_continued_after_a_crash(tmp_path):
    builder, row = begun()
    first = builder.step(row, "a")
    builder.ran(row, "b", "lost", needs="a", given=first)
    again(builder, row)
    builder.saw(row, "a", first)
    builder.ran(row, "b", "b", needs="a", given=first)
    builder.record(row, "b", "b")
    builder.saw(row, "b", "b")
    completed(builder, row, 2, "b")
    verdict = builder.check(tmp_path)
    assert verdict.ok, verdict.as_text()
    assert verdict.counts.steps == 2


def test_a_step_that_fails_and_is_tried_again(tmp_path):
    builder, row = begun()
    builder.record(row, "a", what="step", state="retry")
    builder.suspend(row)
    builder.promote(row)
    builder.claim(row)
    builder.start(row)
    builder.ran(row, "a", "a")
    builder.record(row, "a", "a", was="retry")
    builder.record(row, "b", state="failed")
    builder.record(row, "b", was="failed", state=None)
    value = builder.step(row, "b")
    completed(builder, row, 2, value)
    verdict = builder.check(tmp_path)
    assert verdict.ok, verdict.as_text()
    assert verdict.counts.steps == 3


def test_a_workflow_that_is_deleted_takes_its_steps_along(tmp_path):
    builder, row = begun()
    builder.done()
    builder.step(row, "a")
    builder.suspend(row)
    builder.delete(row)
    builder.record(row, "a", was="done", state=None)
    assert builder.broken(tmp_path) == []


def test_children_and_rows_of_transactions(tmp_path):
    builder, row = begun("workflow_parent")
    child = builder.insert("child", None, "workflow_child")
    builder.record(row, "workflow_child", {"child": child.id}, what="call", state="open")
    booked = builder.step(row, "book", what="transaction")
    builder.effect(row, relation="bookings")
    builder.suspend(row)
    builder.finish(child)
    ended = {"child": child.id, "state": "completed", "output": child.output}
    builder.promote(row)
    builder.claim(row)
    builder.start(row)
    builder.record(row, "workflow_child", ended, what="call", was="open")
    builder.saw(row, "called", "[1]")
    completed(builder, row, 1, booked)
    verdict = builder.check(tmp_path)
    assert verdict.ok, verdict.as_text()


def test_a_run_whose_claim_a_crash_of_the_server_has_undone(tmp_path):
    builder, row = begun()
    value = builder.step(row, "a")
    builder.fault("server_kill")
    builder.ran(row, "a", "of a claim that is gone", fence=2, worker="w9")
    completed(builder, row, 1, value)
    assert builder.broken(tmp_path) == []


# Broken


def recorded_twice(builder: LedgerBuilder, row: Row) -> str:
    value = builder.step(row, "a")
    builder.record(row, "a", value, was="done")
    return value


def recorded_by_a_stale_run(builder: LedgerBuilder, row: Row) -> str:
    stale = row.fence
    again(builder, row)
    builder.wait(1)
    builder.ran(row, "a", "a", fence=stale, worker="w1")
    builder.record(row, "a", "a", fence=stale)
    return "a"


def recorded_under_no_claim(builder: LedgerBuilder, row: Row) -> str:
    builder.ran(row, "a", "a")
    builder.record(row, "a", "a", fence=7)
    return "a"


def lost(builder: LedgerBuilder, row: Row) -> str:
    value = builder.step(row, "a")
    builder.record(row, "a", was="done", state=None)
    return value


def run_again(builder: LedgerBuilder, row: Row) -> str:
    value = builder.step(row, "a")
    again(builder, row)
    builder.ran(row, "a", "another")
    return value


def seen_differently(builder: LedgerBuilder, row: Row) -> str:
    value = builder.step(row, "a")
    again(builder, row)
    builder.saw(row, "a", "another")
    return value


def seen_differently_without_a_record(builder: LedgerBuilder, row: Row) -> str:
    builder.saw(row, "random", "1")
    again(builder, row)
    builder.saw(row, "random", "2")
    return builder.step(row, "a")


def begun_too_early(builder: LedgerBuilder, row: Row) -> str:
    builder.ran(row, "b", "b", needs="before", given="x")
    return builder.step(row, "a")


def begun_with_another_value(builder: LedgerBuilder, row: Row) -> str:
    value = builder.step(row, "a")
    builder.ran(row, "b", "b", needs="a", given="x")
    return value


def made_by_no_run(builder: LedgerBuilder, row: Row) -> str:
    builder.record(row, "a", "a")
    return "a"


def booked_without_a_step(builder: LedgerBuilder, row: Row) -> str:
    builder.effect(row, relation="bookings")
    return builder.step(row, "a")


def not_booked(builder: LedgerBuilder, row: Row) -> str:
    return builder.step(row, "a", what="transaction")


BROKEN = {
    "again: done, then done": recorded_twice,
    "which was held from": recorded_by_a_stale_run,
    "which no worker claimed": recorded_under_no_claim,
    "has lost step 'a'": lost,
    "ran step 'a' again": run_again,
    "saw 'another' of 'a'": seen_differently,
    "but another run saw '1'": seen_differently_without_a_record,
    "before 'before', which it needs": begun_too_early,
    "ran step 'b' with 'x' of 'a'": begun_with_another_value,
    "which that run of it did not make": made_by_no_run,
    "has rows of steps with the fences [1]": booked_without_a_step,
    "has rows of steps with the fences []": not_booked,
}


@pytest.mark.parametrize("why", BROKEN)
def test_a_broken_record_is_found(tmp_path, why):
    builder, row = begun()
    last = BROKEN[why](builder, row)
    completed(builder, row, 1, last)
    violations = builder.check(tmp_path).violations
    assert {violation.number for violation in violations} == {"I12"}
    assert any(why in violation.what for violation in violations), violations


def test_a_workflow_that_completes_with_other_steps_than_it_recorded(tmp_path):
    builder, row = begun()
    value = builder.step(row, "a")
    completed(builder, row, 2, value)
    [violation] = builder.check(tmp_path).violations
    assert "completed with 2 steps" in violation.what


def test_a_child_that_no_step_started(tmp_path):
    builder, row = begun()
    value = builder.step(row, "a")
    completed(builder, row, 1, value)
    builder.finish(builder.insert("child", None, "workflow_child"))
    [violation] = builder.check(tmp_path).violations
    assert (violation.number, violation.job) == ("I12", "child")


def test_another_result_of_a_child_than_it_had(tmp_path):
    builder, row = begun()
    child = builder.insert("child", None, "workflow_child")
    builder.finish(child, worker="w2")
    builder.record(row, "workflow_child", {"child": "child", "state": "completed", "output": 1}, what="call")
    value = builder.step(row, "a")
    completed(builder, row, 1, value)
    verdict = builder.check(tmp_path)
    [violation] = verdict.violations
    assert "has recorded child child as completed" in violation.what
    told = "\n".join(line.what for line in verdict.histories["I12"].lines)
    assert "step      'a' (step) new -> done" in told
    assert "workflow  saw 'a'" in told
