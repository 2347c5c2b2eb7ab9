"""I1 no accepted job is lost, I2 no job out of nothing, I3 one outcome."""

from __future__ import annotations

import pytest

from tests.chaos.histories import Book

# I1


def test_an_accepted_job_of_which_there_is_no_trace(tmp_path):
    """Its commit was answered, and a crash of the server took it back, with its record."""
    book = Book()
    book.done()
    book.offer(job="lost")
    assert book.broken(tmp_path) == ["I1"]


def test_an_accepted_job_that_went_without_being_asked(tmp_path):
    book = Book()
    row = book.done()
    book.leave(row)
    assert book.broken(tmp_path) == ["I1", "I7"]


def test_an_accepted_job_whose_row_is_not_there(tmp_path):
    book = Book()
    book.lost.add(book.done().id)
    assert book.broken(tmp_path) == ["I0", "I1"]


def test_a_refused_delete_is_no_excuse(tmp_path):
    book = Book()
    book.delete(book.done(), answer="refused")
    assert book.broken(tmp_path) == ["I1", "I7"]


def test_a_job_met_under_its_key_is_accepted_as_well(tmp_path):
    book = Book()
    book.done()
    book.offer("keyed", "a", job="lost", existed=True)
    assert book.broken(tmp_path) == ["I1"]


def test_what_a_retry_made_is_accepted_as_well(tmp_path):
    book = Book()
    row = book.done()
    book.call("retry", job=row.id, told="lost")
    assert book.broken(tmp_path) == ["I1"]


def test_a_job_of_which_nobody_was_told_may_be_lost(tmp_path):
    book = Book()
    book.done()
    book.offer(answer="unknown")
    assert book.broken(tmp_path) == []


# I2


def test_a_job_that_nobody_offered(tmp_path):
    book = Book()
    book.done()
    book.finish(book.born("stranger", 99))
    assert book.broken(tmp_path) == ["I2"]


def test_a_job_that_names_no_offer(tmp_path):
    book = Book()
    book.done()
    row = book.born("stranger", 99)
    book.moves[-1] = book.moves[-1]._replace(n=None)
    book.cancel(row)
    assert book.broken(tmp_path) == ["I2"]


def test_a_refused_offer_that_is_there(tmp_path):
    book = Book()
    book.done()
    book.finish(book.enqueue(answer="refused"))
    assert book.broken(tmp_path) == ["I2"]


@pytest.mark.parametrize("answer", ["ok", "unknown"])
def test_two_jobs_of_one_offer(answer, tmp_path):
    book = Book()
    row = book.finish(book.enqueue(answer=answer))
    book.finish(book.born("twin", row.n))
    assert book.broken(tmp_path) == ["I2"]


def test_a_job_of_another_kind_than_offered(tmp_path):
    book = Book()
    book.finish(book.born("other", book.offer("quick", answer="unknown"), "brief"))
    assert book.broken(tmp_path) == ["I2"]


def test_a_job_under_another_key_than_offered(tmp_path):
    book = Book()
    book.finish(book.born("other", book.offer("keyed", "a", "unknown"), "keyed", "b"))
    assert book.broken(tmp_path) == ["I2"]


def test_a_job_under_another_id_than_the_client_was_told(tmp_path):
    book = Book()
    row = book.done()
    book.finish(book.born("other", book.offer(job=row.id)))
    assert book.broken(tmp_path) == ["I2"]


def test_a_client_that_was_told_the_job_of_another_offer(tmp_path):
    book = Book()
    book.offer(job=book.done().id)
    assert book.broken(tmp_path) == ["I2"]


def test_a_client_that_was_told_the_job_of_another_key(tmp_path):
    book = Book()
    book.offer("keyed", "b", job=book.done("keyed", key="a").id, existed=True)
    assert book.broken(tmp_path) == ["I2"]


def test_two_jobs_for_one_key(tmp_path):
    book = Book()
    book.done("keyed", key="a")
    book.done("keyed", key="a")
    assert book.broken(tmp_path) == ["I2"]


def test_the_same_key_of_another_kind_is_another_key(tmp_path):
    book = Book()
    book.done("keyed", key="a")
    book.done("locked", key="a")
    assert book.broken(tmp_path) == []


def test_an_unanswered_retry_makes_one_job_at_most(tmp_path):
    book = Book()
    row = book.done()
    book.finish(book.retry_finished(row, answer="unknown"))
    book.finish(book.born("twin", row.n))
    assert book.broken(tmp_path) == ["I2"]


def test_a_retry_of_one_job_makes_no_other(tmp_path):
    book = Book()
    first, second = book.done(), book.done()
    book.call("retry", job=first.id, told="again")
    book.finish(book.born("again", second.n))
    assert book.broken(tmp_path) == ["I2"]


# I3


def test_two_outcomes(tmp_path):
    book = Book()
    row = book.done()
    book.settle(row, "completed")
    assert "I3" in book.broken(tmp_path)


def test_an_outcome_that_changes(tmp_path):
    book = Book()
    book.move(book.done(), state="failed")
    assert book.broken(tmp_path) == ["I3", "I7"]


def test_a_finished_job_that_comes_back(tmp_path):
    book = Book()
    book.done()
    book.moves.append(book.moves[0]._replace(seq=len(book.moves) + 1, at=book.now))
    assert book.broken(tmp_path) == ["I3"]


def test_a_finished_job_that_comes_back_and_is_run(tmp_path):
    book = Book()
    row = book.done()
    book.stands(row)
    row = book.born(row.id, row.n)
    book.claim(row, fence=2)
    book.start(row)
    assert "I3" in book.broken(tmp_path)


def test_a_deleted_job_that_comes_back(tmp_path):
    book = Book()
    book.done()
    row = book.enqueue()
    book.delete(row)
    book.finish(book.born(row.id, row.n))
    assert "I3" in book.broken(tmp_path)


def test_a_job_with_two_rows(tmp_path):
    book = Book()
    row = book.enqueue()
    twin = book.born(row.id, row.n)
    book.leave(twin)
    book.rows[row.id] = book.finish(row)
    assert book.broken(tmp_path) == ["I3"]
