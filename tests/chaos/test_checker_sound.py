"""Lives that are as they should be, whatever came between: nothing is found."""

from __future__ import annotations

import pytest

from tests.chaos.histories import Book


def straight(book: Book) -> None:
    book.done()


def retried_until_it_works(book: Book) -> None:
    row = book.enqueue()
    book.claim(row)
    book.start(row)
    book.fail(row)
    book.promote(row)
    book.finish(row, worker="w2")


def failed_too_often_and_replayed(book: Book) -> None:
    row = book.enqueue(max_attempts=1)
    book.claim(row)
    book.start(row)
    book.fail(row)
    book.result(row)
    book.replay(row)
    book.finish(row)


def scheduled_then_snoozed(book: Book) -> None:
    row = book.enqueue(state="scheduled")
    book.promote(row)
    book.claim(row)
    book.start(row)
    book.snooze(row)
    book.promote(row)
    book.finish(row)


def crashed_and_handed_back(book: Book) -> None:
    row = book.enqueue()
    book.claim(row)
    book.start(row)
    book.crash(row)
    book.claim(row, "w2")
    book.hand_back(row)
    book.finish(row, worker="w3")


def quarantined(book: Book) -> None:
    row = book.enqueue()
    for worker in ("w1", "w2", "w3"):
        book.claim(row, worker)
        book.start(row)
        book.crash(row)


def given_up_by_its_handler(book: Book) -> None:
    book.finish(book.enqueue(), "failed")


def called_off_by_its_handler(book: Book) -> None:
    book.finish(book.enqueue(), "canceled")


def canceled_while_it_waits(book: Book) -> None:
    row = book.enqueue()
    book.cancel(row)
    book.result(row)


def canceled_while_it_runs(book: Book) -> None:
    row = book.enqueue()
    book.claim(row)
    book.start(row)
    book.cancel(row)
    book.run("aborted", row)


def canceled_as_a_dead_letter(book: Book) -> None:
    row = book.enqueue(max_attempts=1)
    book.claim(row)
    book.start(row)
    book.fail(row)
    book.cancel(row, answer="unknown")


def deleted_while_it_waits(book: Book) -> None:
    book.delete(book.enqueue())


def deleted_after_its_end(book: Book) -> None:
    row = book.done()
    book.result(row)
    book.delete(row, answer="unknown")


def a_finished_one_run_again(book: Book) -> None:
    again = book.retry_finished(book.done())
    book.finish(book.retry_finished(book.finish(again), answer="unknown"))


def a_lease_that_goes_on(book: Book) -> None:
    row = book.enqueue()
    book.claim(row)
    book.start(row)
    book.move(row)
    book.complete(row)


def a_result_that_is_added_later(book: Book) -> None:
    row = book.enqueue()
    book.claim(row)
    book.start(row)
    book.complete(row, output=None)
    book.move(row, output=book.made(row))


def prefetched(book: Book) -> None:
    row = book.enqueue()
    book.claim(row, state="claimed", attempt=0)
    book.move(row, state="running", attempt=1)
    book.start(row)
    book.complete(row)


def an_effect_with_the_completion(book: Book) -> None:
    row = book.enqueue("atomic")
    book.claim(row)
    book.start(row)
    book.crash(row)
    book.finish(row)
    book.effect(row)


def an_order_with_its_job(book: Book) -> None:
    row = book.done("ordered")
    book.order(row.n, row.id)
    book.finish(book.retry_finished(row))


def the_same_key_again(book: Book) -> None:
    row = book.done("keyed", key="a")
    book.offer("keyed", "a", job=row.id, existed=True)
    book.delete(row)
    book.finish(book.enqueue("keyed", key="a"))


def an_answer_that_never_came(book: Book) -> None:
    book.offer(answer="unknown")
    book.finish(book.enqueue(answer="unknown"))


def a_refusal(book: Book) -> None:
    book.offer(answer="refused")


def a_second_coming_that_is_taken_back(book: Book) -> None:
    """An enqueue is repeated because its answer was lost; its job finishes at this very moment."""
    row = book.done()
    seq, at = len(book.moves) + 1, book.now
    born = book.moves[0]
    book.moves.append(born._replace(seq=seq, at=at))
    book.moves.append(born._replace(seq=seq + 1, at=at, was="pending", state=None, n=None))
    book.result(row)


def leaders_that_follow_each_other(book: Book) -> None:
    book.lead("a", 1)
    book.lead("a", 1)
    book.lead("b", 2)
    book.lead("b", 3)
    book.lead("c", 1, duty="stager")


def faults_that_come_and_go(book: Book) -> None:
    book.fault("kill_child")
    book.fault("disk_full", 1.0, done=False)


LIVES = [value for value in list(globals().values()) if callable(value) and getattr(value, "__module__", "") == __name__]


@pytest.mark.parametrize("live", LIVES, ids=lambda live: live.__name__)
def test_a_sound_history_passes(live, tmp_path):
    book = Book()
    book.done()  # something must have happened
    live(book)
    verdict = book.judge(tmp_path)
    assert verdict.ok, verdict.as_text()


def test_all_of_them_together_pass(tmp_path):
    book = Book()
    book.set(concurrency=10)  # what crashed was not replaced by a process of its own
    for live in LIVES:
        live(book)
    verdict = book.judge(tmp_path)
    assert verdict.ok, verdict.as_text()
