"""I14 all work finishes, I15 replies to clients are true, I23 history is repaired."""

from __future__ import annotations

import pytest

from tests.chaos.builder import LedgerBuilder

# I14


def test_a_campaign_that_was_not_drained(tmp_path):
    builder = LedgerBuilder()
    builder.done()
    builder.set(drained=False)
    assert builder.broken(tmp_path) == ["I14"]


@pytest.mark.parametrize("state", ["pending", "scheduled", "blocked"])
def test_a_job_that_is_left(state, tmp_path):
    builder = LedgerBuilder()
    builder.done()
    builder.enqueue(state=state)
    assert builder.broken(tmp_path) == ["I14"]


@pytest.mark.parametrize(("lease_left", "violations"), [(1.5, 1), (0.0, 2), (-3.0, 2), (None, 2)])
def test_a_job_that_is_held_to_the_end(lease_left, violations, tmp_path):
    builder = LedgerBuilder()
    row = builder.enqueue()
    builder.claim(row)
    builder.start(row)
    builder.set_final(row, lease_left=lease_left)
    verdict = builder.check(tmp_path)
    assert [found.number for found in verdict.violations] == ["I14"] * violations


def test_dead_letters_may_stay(tmp_path):
    builder = LedgerBuilder()
    row = builder.enqueue(max_attempts=1)
    builder.claim(row)
    builder.start(row)
    builder.fail(row)
    assert builder.broken(tmp_path) == []


# I15


@pytest.mark.parametrize("deleted", [False, True])
@pytest.mark.parametrize(
    ("seen", "found"),
    [
        (("completed", {"n": 1, "fence": 1, "worker": "w1"}), []),
        (("completed", {"n": 1, "fence": 2, "worker": "w1"}), ["I15"]),
        (("completed", None), ["I15"]),
        (("failed", None), ["I15"]),
        (("canceled", None), ["I15"]),
        (("dead_letter", None), ["I15"]),
        (("running", None), []),
    ],
)
def test_a_result_must_agree_with_the_record(seen, found, deleted, tmp_path):
    builder = LedgerBuilder()
    row = builder.done()
    builder.result(row, *seen)
    if deleted:
        builder.delete(row)
    assert builder.broken(tmp_path) == found


def test_an_unanswered_result_is_not_checked(tmp_path):
    builder = LedgerBuilder()
    builder.call("result", "unknown", job=builder.done().id)
    assert builder.broken(tmp_path) == []


@pytest.mark.parametrize(
    ("reply", "answer", "found"), [(True, "ok", ["I15"]), (1, "ok", ["I15"]), (0, "ok", []), (None, "unknown", [])]
)
def test_a_job_that_was_reported_as_canceled(reply, answer, found, tmp_path):
    builder = LedgerBuilder()
    builder.call("cancel", answer, job=builder.done().id, reply=reply)
    assert builder.broken(tmp_path) == found


@pytest.mark.parametrize(("reply", "found"), [(True, ["I15"]), (1, ["I15"]), (0, [])])
def test_a_job_that_was_reported_as_deleted(reply, found, tmp_path):
    builder = LedgerBuilder()
    builder.call("delete", job=builder.done().id, reply=reply)
    assert builder.broken(tmp_path) == found


def test_a_partition_that_was_not_repaired(tmp_path):
    builder = LedgerBuilder()
    builder.done()
    builder.set(repaired=False)
    assert builder.broken(tmp_path) == ["I23"]
