"""Bugs in how handlers are run."""

from __future__ import annotations

from tests.planted.bug import Bug, Edit, Promise

TRANSACTION = "worker/run/open_transaction.py"
GUARANTEE, FORKS = "tests/transactions/test_guarantee.py", "tests/worker/test_forks.py"
TOGETHER = "tests/transactions/test_together.py"

BUGS = (
    Bug(
        name="settled_after_the_commit",
        breaks="the rows of a run that lost its job stay, and so do those of a run that dies in between",
        promise=Promise.TOGETHER,
        edits=(
            Edit(
                TRANSACTION,
                "            # Twice: it finds",
                "            await self._borrowed.commit()\n            # Twice: it finds",
            ),
        ),
        caught_by=(f"{TOGETHER}::test_a_run_whose_job_was_taken_away_commits_nothing_and_the_next_run_all",),
    ),
    Bug(
        name="committed_without_the_claim",
        breaks="a plain function that lost its job commits its rows anyway",
        promise=Promise.TOGETHER,
        edits=(
            Edit(
                TRANSACTION,
                " or self._borrowed.fetch_sync(query, self._schema)\n",
                " or self._borrowed.fetch_sync(query, self._schema)\n            self._borrowed.commit_sync()\n",
            ),
        ),
        caught_by=(f"{TOGETHER}::test_a_run_whose_job_was_taken_away_commits_nothing_and_the_next_run_all",),
    ),
    Bug(
        name="timeout_by_another_clock",
        breaks="no run ever takes too long",
        promise=Promise.TIME,
        edits=(Edit("worker/run/run.py", "self.started = time.monotonic()", "self.started = time.time()"),),
        caught_by=("tests/worker/test_aborts.py::test_a_run_that_takes_too_long_is_aborted_and_tried_again",),
    ),
    Bug(
        name="abandoned_keeps_its_slot",
        breaks="a coroutine that ignores its cancellation takes a slot away forever",
        promise=Promise.TIME,
        edits=(Edit("worker/run/slots.py", "        self._close(run, self._of_abort(run, asyncio.CancelledError()))\n", ""),),
        caught_by=("tests/worker/test_stubborn.py::test_a_coroutine_that_ignores_its_cancellation_loses_its_slot",),
    ),
    Bug(
        name="snooze_spends_an_attempt",
        breaks="a job that snoozes several times is dead-lettered",
        promise=Promise.TIME,
        edits=(Edit("model/outcomes.py", "delay=delay, until=until, refund=1)", "delay=delay, until=until)"),),
        caught_by=("tests/worker/test_engine.py::test_a_snooze_spends_no_attempt",),
    ),
    Bug(
        name="completed_after_its_own_commit",
        breaks="a handler that commits by itself completes its job in another transaction than its rows",
        promise=Promise.TOGETHER,
        edits=(
            Edit(
                "store/sql/jobs/finish_jobs.sql",
                "where :xact::text is null or pg_current_xact_id()::text = :xact::text))",
                "where :xact::text is null or true))",
            ),
        ),
        caught_by=(f"{GUARANTEE}::test_a_commit_inside_of_the_block_is_refused_and_not_repeated",),
    ),
    Bug(
        name="forks_outlive_their_worker",
        breaks="a process that a handler has forked continues when its worker is gone",
        promise=Promise.STALE,
        edits=(Edit("lifeline.py", "    if _forking.watch:\n        die_with(process)\n", ""),),
        caught_by=(f"{FORKS}::test_what_a_handler_has_forked_ends_with_its_worker[start_on_loop-killed]",),
    ),
    Bug(
        name="forked_copy_answers",
        breaks="a copy that a handler has forked continues as the worker, and records what it returns",
        promise=Promise.ONCE,
        edits=(
            Edit(
                "lifeline.py",
                "    if _forks[0] != forks_before:\n        os._exit(0)\n",
                "    assert forks_before >= 0\n",
            ),
            Edit("lifeline.py", "        loop.call_soon(os._exit, 0)\n", "        return\n"),
        ),
        caught_by=(f"{FORKS}::test_a_copy_that_returns_from_the_handler_ends_and_records_nothing",),
    ),
    Bug(
        name="unwritten_heartbeats_go_unnoticed",
        breaks="a run whose heartbeats cannot be written continues beside the run that holds its job now",
        promise=Promise.STALE,
        edits=(
            Edit(
                "worker/run/monitor.py",
                "        if run.is_cut_off(now) and not (run.committing or run.signal.aborted):\n",
                "        if False:\n",
            ),
        ),
        caught_by=(
            "tests/worker/test_updates.py::test_a_run_whose_heartbeats_cannot_be_written_until_its_lease_ends_is_aborted_and_runs_again",
        ),
    ),
)
