"""Bugs in how handlers are run."""

from __future__ import annotations

from tests.planted.bug import Bug, Edit, Promise

TRANSACTIONS = "worker/transactions.py"
TOGETHER = "tests/transactions/test_together.py"

BUGS = (
    Bug(
        name="settled_after_the_commit",
        breaks="the rows of a run that lost its job stay, and so do those of a run that dies in between",
        promise=Promise.TOGETHER,
        edits=(
            Edit(
                TRANSACTIONS,
                "            # Twice: it goes",
                "            await self._borrowed.commit()\n            # Twice: it goes",
            ),
        ),
        caught_by=(f"{TOGETHER}::test_a_run_whose_job_was_taken_away_commits_nothing_and_the_next_run_all",),
    ),
    Bug(
        name="committed_whoever_holds_it",
        breaks="a plain function that lost its job commits its rows all the same",
        promise=Promise.TOGETHER,
        edits=(
            Edit(
                TRANSACTIONS,
                "            if rows:\n                self._borrowed.commit_sync()\n                return bool(rows[0][1])\n"
                "            self._borrowed.rollback_sync()\n",
                "            self._borrowed.commit_sync()\n            if rows:\n                return bool(rows[0][1])\n",
            ),
        ),
        caught_by=(f"{TOGETHER}::test_a_run_whose_job_was_taken_away_commits_nothing_and_the_next_run_all",),
    ),
    Bug(
        name="timeout_by_another_clock",
        breaks="no run ever takes too long",
        promise=Promise.TIME,
        edits=(Edit("worker/runs.py", "self.started = time.monotonic()", "self.started = time.time()"),),
        caught_by=("tests/worker/test_aborts.py::test_a_run_that_takes_too_long_is_aborted_and_tried_again",),
    ),
    Bug(
        name="abandoned_keeps_its_slot",
        breaks="a coroutine that ignores its cancellation takes a slot away for ever",
        promise=Promise.TIME,
        edits=(Edit("worker/slots.py", "        self._close(run, self._of_abort(run, asyncio.CancelledError()))\n", ""),),
        caught_by=("tests/worker/test_stubborn.py::test_a_coroutine_that_ignores_its_cancellation_loses_its_slot",),
    ),
    Bug(
        name="snooze_spends_an_attempt",
        breaks="a job that asks to be run later is set aside after some times",
        promise=Promise.TIME,
        edits=(
            Edit(
                "worker/settlements.py", "delay=outcome.delay.total_seconds(), refund=1)", "delay=outcome.delay.total_seconds())"
            ),
        ),
        caught_by=("tests/worker/test_engine.py::test_a_snooze_spends_no_attempt",),
    ),
)
