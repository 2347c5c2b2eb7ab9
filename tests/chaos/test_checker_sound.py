"""Correct histories, with all kinds of events: no violation is found."""

from __future__ import annotations

import pytest

from tests.chaos.builder import LedgerBuilder


def straight(builder: LedgerBuilder) -> None:
    builder.done()


def retried_until_it_works(builder: LedgerBuilder) -> None:
    row = builder.enqueue()
    builder.claim(row)
    builder.start(row)
    builder.fail(row)
    builder.promote(row)
    builder.finish(row, worker="w2")


def failed_too_often_and_replayed(builder: LedgerBuilder) -> None:
    row = builder.enqueue(max_attempts=1)
    builder.claim(row)
    builder.start(row)
    builder.fail(row)
    builder.result(row)
    builder.replay(row)
    builder.finish(row)


def scheduled_then_snoozed(builder: LedgerBuilder) -> None:
    row = builder.enqueue(state="scheduled")
    builder.promote(row)
    builder.claim(row)
    builder.start(row)
    builder.snooze(row)
    builder.promote(row)
    builder.finish(row)


def crashed_and_requeued(builder: LedgerBuilder) -> None:
    row = builder.enqueue()
    builder.claim(row)
    builder.start(row)
    builder.crash(row)
    builder.claim(row, "w2")
    builder.requeue(row)
    builder.finish(row, worker="w3")


def quarantined(builder: LedgerBuilder) -> None:
    row = builder.enqueue()
    for worker in ("w1", "w2", "w3"):
        builder.claim(row, worker)
        builder.start(row)
        builder.crash(row)


def failed_by_its_handler(builder: LedgerBuilder) -> None:
    builder.finish(builder.enqueue(), "failed")


def canceled_by_its_handler(builder: LedgerBuilder) -> None:
    builder.finish(builder.enqueue(), "canceled")


def canceled_while_it_waits(builder: LedgerBuilder) -> None:
    row = builder.enqueue()
    builder.cancel(row)
    builder.result(row)


def canceled_while_it_runs(builder: LedgerBuilder) -> None:
    row = builder.enqueue()
    builder.claim(row)
    builder.start(row)
    builder.cancel(row)
    builder.run("aborted", row)


def canceled_as_a_dead_letter(builder: LedgerBuilder) -> None:
    row = builder.enqueue(max_attempts=1)
    builder.claim(row)
    builder.start(row)
    builder.fail(row)
    builder.cancel(row, answer="unknown")


def deleted_while_it_waits(builder: LedgerBuilder) -> None:
    builder.delete(builder.enqueue())


def deleted_after_its_end(builder: LedgerBuilder) -> None:
    row = builder.done()
    builder.result(row)
    builder.delete(row, answer="unknown")


def a_finished_one_run_again(builder: LedgerBuilder) -> None:
    again = builder.retry_finished(builder.done())
    builder.finish(builder.retry_finished(builder.finish(again), answer="unknown"))


def a_lease_that_is_renewed(builder: LedgerBuilder) -> None:
    row = builder.enqueue()
    builder.claim(row)
    builder.start(row)
    builder.move(row)
    builder.complete(row)


def a_result_that_is_added_later(builder: LedgerBuilder) -> None:
    row = builder.enqueue()
    builder.claim(row)
    builder.start(row)
    builder.complete(row, output=None)
    builder.move(row, output=builder.output_of(row))


def an_effect_with_the_completion(builder: LedgerBuilder) -> None:
    row = builder.enqueue("atomic")
    builder.claim(row)
    builder.start(row)
    builder.crash(row)
    builder.finish(row)
    builder.effect(row)


def an_order_with_its_job(builder: LedgerBuilder) -> None:
    row = builder.done("ordered")
    builder.order(row.n, row.id)
    builder.finish(builder.retry_finished(row))


def the_same_key_again(builder: LedgerBuilder) -> None:
    row = builder.done("keyed", key="a")
    builder.request("keyed", "a", job=row.id, existed=True)
    builder.delete(row)
    builder.finish(builder.enqueue("keyed", key="a"))


def an_answer_that_never_came(builder: LedgerBuilder) -> None:
    builder.request(answer="unknown")
    builder.finish(builder.enqueue(answer="unknown"))


def a_refusal(builder: LedgerBuilder) -> None:
    builder.request(answer="refused")


def a_second_row_that_is_deleted_at_once(builder: LedgerBuilder) -> None:
    """An enqueue is repeated because its answer was lost; its job finishes at this very moment."""
    row = builder.done()
    seq, at = len(builder.moves) + 1, builder.now
    inserted = builder.moves[0]
    builder.moves.append(inserted._replace(seq=seq, at=at))
    builder.moves.append(inserted._replace(seq=seq + 1, at=at, was="pending", state=None, n=None))
    builder.result(row)


def leaders_that_follow_each_other(builder: LedgerBuilder) -> None:
    builder.lead("a", 1)
    builder.lead("a", 1)
    builder.lead("b", 2)
    builder.lead("b", 3)
    builder.lead("c", 1, duty="stager")


def faults_that_begin_and_end(builder: LedgerBuilder) -> None:
    builder.fault("kill_child")
    builder.fault("disk_full", 1.0, done=False)


HISTORIES = [value for value in list(globals().values()) if callable(value) and getattr(value, "__module__", "") == __name__]


@pytest.mark.parametrize("history", HISTORIES, ids=lambda history: history.__name__)
def test_a_correct_history_passes(history, tmp_path):
    builder = LedgerBuilder()
    builder.done()  # something must have happened
    history(builder)
    verdict = builder.check(tmp_path)
    assert verdict.ok, verdict.as_text()


def test_all_of_them_together_pass(tmp_path):
    builder = LedgerBuilder()
    builder.set(concurrency=10)  # what crashed was not replaced by a process of its own
    for history in HISTORIES:
        history(builder)
    verdict = builder.check(tmp_path)
    assert verdict.ok, verdict.as_text()
