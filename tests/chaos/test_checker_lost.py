"""After a failover to a standby that lagged: what it never received is excused, and nothing else."""

from __future__ import annotations

import pytest

from tests.chaos.histories import Book

LAG = 2.0


def failed_over() -> tuple[Book, float]:
    """A book, and a moment in the middle of what was lost."""
    book = Book()
    book.done()
    book.wait(10)
    moment = book.now + LAG / 2
    book.fault("failover", LAG)
    return book, moment


@pytest.mark.parametrize(("at", "found"), [(0.0, []), (-5.0, ["I1"]), (5.0, ["I1"])])
def test_a_job_may_be_gone_that_was_accepted_while_the_standby_lagged(at, found, tmp_path):
    book, moment = failed_over()
    book.now = moment + at
    book.offer(job="lost")
    assert book.broken(tmp_path) == found


def test_a_job_that_is_there_and_goes_later_is_not_excused(tmp_path):
    book, moment = failed_over()
    book.now = moment
    row = book.enqueue()
    book.leave(row)
    assert book.broken(tmp_path) == ["I1", "I7"]


@pytest.mark.parametrize(("at", "found"), [(0.0, []), (LAG, []), (-5.0, ["I0", "I1"]), (30.0, ["I0", "I1"])])
def test_a_job_that_was_lost_may_have_run_meanwhile(at, found, tmp_path):
    book, moment = failed_over()
    book.now = moment + at if abs(at) > LAG else moment
    row = book.enqueue()
    book.claim(row)
    book.now = moment + at
    book.start(row)
    del book.rows[row.id]
    book.moves = [move for move in book.moves if move.job != row.id]
    assert book.broken(tmp_path) == found


@pytest.mark.parametrize(("at", "found"), [(0.0, []), (5.0, ["I15"])])
def test_a_result_that_was_seen_while_the_standby_lagged_may_come_again_otherwise(at, found, tmp_path):
    book, moment = failed_over()
    row = book.enqueue()
    book.now = moment + at
    book.call("result", job=row.id, told=["completed", {"n": row.n, "fence": 1, "worker": "w7"}])
    book.now = moment + 8
    book.finish(row)
    assert book.broken(tmp_path) == found


def test_a_claim_that_was_lost_may_be_granted_again_under_the_same_fence(tmp_path):
    book, moment = failed_over()
    book.now = moment - 3
    row = book.enqueue()
    book.now = moment
    book.start(row, worker="w2", fence=1)
    book.now = moment + 5
    book.finish(row)
    assert book.broken(tmp_path) == []


def test_a_claim_that_was_lost_with_all_that_came_before_it(tmp_path):
    """The promotion of the job was lost as well, and its own worker ran it twice."""
    book, moment = failed_over()
    book.now = moment - 3
    row = book.enqueue(state="scheduled")
    book.now = moment
    book.run("started", row, worker="w1", fence=1)
    book.run("returned", row, worker="w1", fence=1)
    book.now = moment + 5
    book.promote(row)
    book.finish(row)
    assert book.broken(tmp_path) == []


def test_a_run_twice_that_no_failover_explains(tmp_path):
    book, moment = failed_over()
    book.now = moment + 5
    row = book.enqueue()
    book.claim(row)
    book.start(row)
    book.start(row)
    book.complete(row)
    assert book.broken(tmp_path) == ["I5"]


def test_a_settlement_that_was_lost_must_be_noticed_soon(tmp_path):
    book, moment = failed_over()
    book.worker("registered")
    book.now = moment - 3
    row = book.enqueue()
    book.claim(row)
    book.start(row)
    book.now = moment
    book.run("returned", row)
    book.now = moment + 60
    book.hand_back(row)
    book.finish(row)
    assert book.broken(tmp_path) == ["I20"]
