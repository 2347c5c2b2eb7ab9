"""I1 no accepted job is lost, I2 no job appears from nowhere, I3 one outcome per job."""

from __future__ import annotations

import pytest

from tests.chaos.builder import LedgerBuilder

# I1


def test_an_accepted_job_of_which_there_is_no_trace(tmp_path):
    """Its commit was answered, and a crash of the server took it back, with its record."""
    builder = LedgerBuilder()
    builder.done()
    builder.request(job="lost")
    assert builder.broken(tmp_path) == ["I1"]


def test_an_accepted_job_that_disappeared_without_a_request(tmp_path):
    builder = LedgerBuilder()
    row = builder.done()
    builder.remove(row)
    assert builder.broken(tmp_path) == ["I1", "I7"]


def test_an_accepted_job_whose_row_is_not_there(tmp_path):
    builder = LedgerBuilder()
    builder.lost.add(builder.done().id)
    assert builder.broken(tmp_path) == ["I0", "I1"]


def test_a_refused_delete_is_not_an_excuse(tmp_path):
    builder = LedgerBuilder()
    builder.delete(builder.done(), answer="refused")
    assert builder.broken(tmp_path) == ["I1", "I7"]


def test_a_job_met_under_its_key_is_accepted_as_well(tmp_path):
    builder = LedgerBuilder()
    builder.done()
    builder.request("keyed", "a", job="lost", existed=True)
    assert builder.broken(tmp_path) == ["I1"]


def test_what_a_retry_made_is_accepted_as_well(tmp_path):
    builder = LedgerBuilder()
    row = builder.done()
    builder.call("retry", job=row.id, reply="lost")
    assert builder.broken(tmp_path) == ["I1"]


def test_a_job_whose_id_was_never_returned_may_be_lost(tmp_path):
    builder = LedgerBuilder()
    builder.done()
    builder.request(answer="unknown")
    assert builder.broken(tmp_path) == []


# I2


def test_a_job_that_was_never_requested(tmp_path):
    builder = LedgerBuilder()
    builder.done()
    builder.finish(builder.insert("stranger", 99))
    assert builder.broken(tmp_path) == ["I2"]


def test_a_job_that_has_no_request_number(tmp_path):
    builder = LedgerBuilder()
    builder.done()
    row = builder.insert("stranger", 99)
    builder.moves[-1] = builder.moves[-1]._replace(n=None)
    builder.cancel(row)
    assert builder.broken(tmp_path) == ["I2"]


def test_a_refused_request_whose_job_exists(tmp_path):
    builder = LedgerBuilder()
    builder.done()
    builder.finish(builder.enqueue(answer="refused"))
    assert builder.broken(tmp_path) == ["I2"]


@pytest.mark.parametrize("answer", ["ok", "unknown"])
def test_two_jobs_of_one_request(answer, tmp_path):
    builder = LedgerBuilder()
    row = builder.finish(builder.enqueue(answer=answer))
    builder.finish(builder.insert("second", row.n))
    assert builder.broken(tmp_path) == ["I2"]


def test_a_job_of_another_kind_than_requested(tmp_path):
    builder = LedgerBuilder()
    builder.finish(builder.insert("other", builder.request("quick", answer="unknown"), "brief"))
    assert builder.broken(tmp_path) == ["I2"]


def test_a_job_under_another_key_than_requested(tmp_path):
    builder = LedgerBuilder()
    builder.finish(builder.insert("other", builder.request("keyed", "a", "unknown"), "keyed", "b"))
    assert builder.broken(tmp_path) == ["I2"]


def test_a_job_under_another_id_than_was_returned(tmp_path):
    builder = LedgerBuilder()
    row = builder.done()
    builder.finish(builder.insert("other", builder.request(job=row.id)))
    assert builder.broken(tmp_path) == ["I2"]


def test_the_job_of_another_request_is_returned(tmp_path):
    builder = LedgerBuilder()
    builder.request(job=builder.done().id)
    assert builder.broken(tmp_path) == ["I2"]


def test_the_job_of_another_key_is_returned(tmp_path):
    builder = LedgerBuilder()
    builder.request("keyed", "b", job=builder.done("keyed", key="a").id, existed=True)
    assert builder.broken(tmp_path) == ["I2"]


def test_two_jobs_for_one_key(tmp_path):
    builder = LedgerBuilder()
    builder.done("keyed", key="a")
    builder.done("keyed", key="a")
    assert builder.broken(tmp_path) == ["I2"]


def test_the_same_key_of_another_kind_is_another_key(tmp_path):
    builder = LedgerBuilder()
    builder.done("keyed", key="a")
    builder.done("locked", key="a")
    assert builder.broken(tmp_path) == []


def test_an_unanswered_retry_makes_one_job_at_most(tmp_path):
    builder = LedgerBuilder()
    row = builder.done()
    builder.finish(builder.retry_finished(row, answer="unknown"))
    builder.finish(builder.insert("second", row.n))
    assert builder.broken(tmp_path) == ["I2"]


def test_a_retry_of_one_job_makes_no_other(tmp_path):
    builder = LedgerBuilder()
    first, second = builder.done(), builder.done()
    builder.call("retry", job=first.id, reply="again")
    builder.finish(builder.insert("again", second.n))
    assert builder.broken(tmp_path) == ["I2"]


# I3


def test_two_outcomes(tmp_path):
    builder = LedgerBuilder()
    row = builder.done()
    builder.settle(row, "completed")
    assert "I3" in builder.broken(tmp_path)


def test_an_outcome_that_changes(tmp_path):
    builder = LedgerBuilder()
    builder.move(builder.done(), state="failed")
    assert builder.broken(tmp_path) == ["I3", "I7"]


def test_a_finished_job_that_is_live_again(tmp_path):
    builder = LedgerBuilder()
    builder.done()
    builder.moves.append(builder.moves[0]._replace(seq=len(builder.moves) + 1, at=builder.now))
    assert builder.broken(tmp_path) == ["I3"]


def test_a_finished_job_that_is_live_again_and_runs(tmp_path):
    builder = LedgerBuilder()
    row = builder.done()
    builder.set_final(row)
    row = builder.insert(row.id, row.n)
    builder.claim(row, fence=2)
    builder.start(row)
    assert "I3" in builder.broken(tmp_path)


def test_a_deleted_job_that_is_live_again(tmp_path):
    builder = LedgerBuilder()
    builder.done()
    row = builder.enqueue()
    builder.delete(row)
    builder.finish(builder.insert(row.id, row.n))
    assert "I3" in builder.broken(tmp_path)


def test_a_job_with_two_rows(tmp_path):
    builder = LedgerBuilder()
    row = builder.enqueue()
    second = builder.insert(row.id, row.n)
    builder.remove(second)
    builder.rows[row.id] = builder.finish(row)
    assert builder.broken(tmp_path) == ["I3"]
