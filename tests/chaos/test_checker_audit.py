"""I16 every change is audited."""

from __future__ import annotations

from typing import Any

import pytest

from tests.chaos.builder import LedgerBuilder, Row

ACTOR = "campaign-client-0"


@pytest.fixture
def builder() -> LedgerBuilder:
    builder = LedgerBuilder()
    builder.done()
    return builder


def changed(builder: LedgerBuilder, **call: Any) -> Row:
    """A job that a client cancels through the web server."""
    row = builder.enqueue()
    audit(builder, row)
    builder.call("cancel", **{"job": row.id, "reply": True, "actor": ACTOR} | call)
    builder.remove(row)
    builder.settle(row, "canceled", claim=None)
    return row


def audit(builder: LedgerBuilder, row: Row, **overrides: Any) -> None:
    """Both entries of a call."""
    request = f"r{len(builder.audit)}"
    builder.entry(request, row.id, **overrides)
    builder.entry(request, row.id, **{"phase": "finished", "status": 200} | overrides)


def test_a_recorded_change(builder, tmp_path):
    changed(builder)
    assert builder.broken(tmp_path) == []


def test_a_change_without_an_entry(builder, tmp_path):
    changed(builder)
    builder.audit.clear()
    assert builder.broken(tmp_path) == ["I16"]


def test_a_change_by_another_actor(builder, tmp_path):
    changed(builder)
    builder.audit = [entry._replace(actor="campaign-client-1") for entry in builder.audit]
    assert builder.broken(tmp_path) == ["I16"]


def test_a_change_of_another_job(builder, tmp_path):
    changed(builder)
    builder.audit = [entry._replace(subject="job-9") for entry in builder.audit]
    assert builder.broken(tmp_path) == ["I16"]


def test_another_change(builder, tmp_path):
    changed(builder)
    builder.audit = [entry._replace(action="delete_job") for entry in builder.audit]
    assert builder.broken(tmp_path) == ["I16"]


def test_an_entry_long_after_the_change(builder, tmp_path):
    changed(builder)
    builder.audit = [entry._replace(at=entry.at + 60) for entry in builder.audit]
    assert builder.broken(tmp_path) == ["I16"]


def test_a_change_that_is_recorded_as_refused(builder, tmp_path):
    changed(builder)
    builder.audit[-1] = builder.audit[-1]._replace(status=409)
    assert builder.broken(tmp_path) == ["I16"]


def test_a_change_whose_server_was_killed_before_the_second_entry(builder, tmp_path):
    changed(builder)
    builder.audit.pop()
    assert builder.broken(tmp_path) == []


def test_an_end_without_a_beginning(builder, tmp_path):
    changed(builder)
    row = builder.done()
    builder.entry("r9", row.id, phase="finished", status=409)
    assert builder.broken(tmp_path) == ["I16"]


def test_an_entry_of_a_call_that_was_not_made(builder, tmp_path):
    changed(builder)
    audit(builder, builder.done())
    assert builder.broken(tmp_path) == ["I16"]


def test_an_entry_before_its_call(builder, tmp_path):
    changed(builder)
    row = builder.done()
    audit(builder, row)
    builder.wait(60)
    builder.call("cancel", "refused", job=row.id, actor=ACTOR)
    assert builder.broken(tmp_path) == ["I16"]


@pytest.mark.parametrize("answer", ["refused", "unknown"])
def test_calls_that_may_not_have_reached_the_server(builder, tmp_path, answer):
    changed(builder)
    builder.call("cancel", answer, job=builder.done().id, actor=ACTOR)
    assert builder.broken(tmp_path) == []


def test_entries_of_people_who_look_at_the_campaign(builder, tmp_path):
    changed(builder)
    audit(builder, builder.done(), actor="another")
    assert builder.broken(tmp_path) == []


def test_changes_that_do_not_go_through_the_web_server(builder, tmp_path):
    builder.cancel(builder.enqueue())
    assert builder.broken(tmp_path) == []


def test_an_entry_that_a_failover_lost(builder, tmp_path):
    builder.fault("failover", seconds=1)
    changed(builder)
    builder.audit.clear()
    builder.faults = [fault._replace(ended=builder.now) for fault in builder.faults]
    assert "I16" not in builder.broken(tmp_path)
