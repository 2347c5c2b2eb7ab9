"""Bugs in how handlers are run."""

from __future__ import annotations

from tests.planted.bug import Bug, Edit, Promise

TRANSACTIONS = "worker/open_transaction.py"
TOGETHER = "tests/transactions/test_together.py"
GUARANTEE = "tests/transactions/test_guarantee.py"

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
                "            if rows:\n                self._borrowed.commit_sync()\n                return bool(rows[0][1])\n",
                "            self._borrowed.commit_sync()\n            if rows:\n                return bool(rows[0][1])\n",
            ),
        ),
        caught_by=(f"{TOGETHER}::test_a_run_whose_job_was_taken_away_commits_nothing_and_the_next_run_all",),
    ),
    Bug(
        name="completed_in_any_transaction",
        breaks="a handler that commits by itself completes its job in another transaction, and after a crash writes twice",
        promise=Promise.TOGETHER,
        edits=(
            Edit(
                "store/sql/jobs/finish_jobs.sql",
                "\n     where :xact::text is null or pg_current_xact_id()::text = :xact::text)",
                "\n     where :xact::text is null or true)",
            ),
        ),
        caught_by=(f"{GUARANTEE}::test_a_commit_inside_of_the_block_is_refused_and_not_repeated",),
    ),
    Bug(
        name="autocommit_taken_for_a_transaction",
        breaks="what a handler wrote stays although it failed",
        promise=Promise.TOGETHER,
        edits=(Edit(TRANSACTIONS, "        if second[0] != self._xact:\n", "        if second[0] is None:\n"),),
        caught_by=(f"{GUARANTEE}::test_an_engine_that_commits_every_statement_is_refused_before_the_handler_writes",),
    ),
    Bug(
        name="any_database_will_do",
        breaks="a handler does its work in a database in which its job cannot be completed",
        promise=Promise.TOGETHER,
        edits=(Edit(TRANSACTIONS, "return bool(seen) or self.given is None", "return bool(seen) or True"),),
        caught_by=(f"{GUARANTEE}::test_a_connection_to_another_database_is_refused_before_the_handler_writes",),
    ),
    Bug(
        name="repeats_what_is_committed",
        breaks="each retry writes once more what the handler committed by itself",
        promise=Promise.TOGETHER,
        edits=(Edit("worker/settlements.py", " or (isinstance(error, TransactionError) and error.committed)", ""),),
        caught_by=(f"{GUARANTEE}::test_a_commit_inside_of_the_block_is_refused_and_not_repeated",),
    ),
    Bug(
        name="late_failure_swallowed",
        breaks="a handler that fails after its session has completed the job leaves no trace",
        promise=Promise.RECORD,
        edits=(Edit("worker/slots.py", "                await self._late.report(settlement)\n", "                pass\n"),),
        caught_by=("tests/transactions/test_late_failures.py::test_an_exception_is_logged_told_and_kept_with_the_job",),
    ),
    Bug(
        name="a_fork_returns_like_its_original",
        breaks="a copy that a handler has forked records its own result, or runs the worker a second time",
        promise=Promise.ONCE,
        edits=(Edit("lifeline.py", "    if os.getpid() != process:\n        os._exit(0)\n", "    _ = process\n"),),
        caught_by=("tests/worker/test_forks.py::test_a_copy_that_returns_from_the_handler_ends_and_records_nothing",),
    ),
    Bug(
        name="a_signal_to_a_fork_is_the_workers",
        breaks="whoever ends a process that a handler has forked stops the worker instead",
        promise=Promise.BACK,
        edits=(Edit("lifeline.py", "        _begin_as_child_of(_owner.pop())\n", "        _owner.pop()\n"),),
        caught_by=("tests/worker/test_forks.py::test_a_signal_to_what_a_handler_has_forked_ends_that_and_not_the_worker",),
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
        edits=(Edit("worker/settlements.py", "**_due(outcome), refund=1)", "**_due(outcome))"),),
        caught_by=("tests/worker/test_engine.py::test_a_snooze_spends_no_attempt",),
    ),
)
