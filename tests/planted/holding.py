"""Bugs by which a job is held by a worker that does not run it."""

from __future__ import annotations

from tests.planted.bug import Bug, Edit, Promise

RETURN, FORGET = "store/sql/jobs/return_jobs.sql", "store/sql/claims/forget_claims.sql"
CLAIMS, ENGINE, SLOTS, SETTLER = (
    "worker/claim/combined_claimer.py",
    "worker/engine.py",
    "worker/run/slots.py",
    "worker/run/settler.py",
)
SNAPSHOTS, CLAIM_ROWS = "tests/interleavings/test_snapshots.py", "tests/store/test_claim_rows.py"
ORPHANS, HELD, STOPS = "tests/store/test_orphans.py", "tests/worker/test_held.py", "tests/outages/test_stops.py"

ENDED, SETTLING = "tests/worker/test_ended_claims.py", "tests/worker/test_settler.py"

LOCKED_UNKNOWN = (
    f"{HELD}::test_an_unknown_job_that_a_transaction_has_locked_holds_up_neither_others_nor_outcomes_and_is_requeued_later"
)

NEVER_CLOSED = Edit("worker/run/monitor.py", "        if self._slots.close_ended(run):\n            return\n", "")

BUGS = (
    Bug(
        name="removed_though_a_job_changed",
        breaks="a job that changes between the snapshot and the lock of its return is held by a worker that has no row",
        promise=Promise.BACK,
        edits=(Edit(RETURN, "j.id not in (select n.id from released n)", "j.id not in (select h.id from held h)"),),
        caught_by=(
            f"{SNAPSHOTS}::test_a_row_that_changes_under_a_statement_is_not_reported_and_is_found_again[return_jobs]",
            f"{ORPHANS}::test_a_job_that_changes_while_it_is_being_returned_keeps_its_worker_until_it_is_returned[heartbeat]",
        ),
    ),
    Bug(
        name="holders_without_a_row_ignored",
        breaks="jobs of a worker whose row is gone stay with it forever",
        promise=Promise.BACK,
        edits=(
            Edit(
                "leader/duties/reaper.py",
                "        if time.monotonic() < self._next_unknown:\n",
                "        if time.monotonic() >= self._next_unknown:\n",
            ),
        ),
        caught_by=("tests/leader/test_duties.py::test_the_reaper_requeues_jobs_whose_worker_has_no_row",),
    ),
    Bug(
        name="claims_without_a_row_ignored",
        breaks="jobs held under a claim whose row is gone stay there forever",
        promise=Promise.BACK,
        edits=(Edit("store/sql/workers/condemn_unknown.sql", "where e.claim_id is not null and", "where false and"),),
        caught_by=(f"{CLAIM_ROWS}::test_jobs_of_a_claim_without_a_row_are_requeued_and_run_again",),
    ),
    Bug(
        name="first_jobs_searched_only",
        breaks="of many jobs, those held under a claim without a row are found only among the first",
        promise=Promise.BACK,
        edits=(
            Edit(
                "leader/duties/reaper.py",
                "self._examined = answers[-1].next if answers else None",
                "self._examined = None",
            ),
        ),
        caught_by=("tests/leader/test_duties.py::test_the_reaper_requeues_jobs_whose_claim_has_no_row",),
    ),
    Bug(
        name="claims_forgotten_too_soon",
        breaks="a worker removes the row of a claim though a job is held under it: that job is not requeued when the worker dies",
        promise=Promise.BACK,
        edits=(
            Edit(FORGET, "and not exists (\n", "and (true or not exists (\n"),
            Edit(FORGET, "limit 1) j)\n", "limit 1) j))\n"),
        ),
        caught_by=(f"{CLAIM_ROWS}::test_claims_under_which_nothing_is_held_are_forgotten",),
    ),
    Bug(
        name="forgetting_waits_for_locks",
        breaks="behind a pooler one locked row of a claim holds up all outcomes of its worker",
        promise=Promise.BACK,
        edits=(Edit(FORGET, "for update skip locked", "for update"),),
        caught_by=(
            f"{ENDED}::test_a_claim_that_a_transaction_has_locked_holds_up_neither_other_claims_nor_outcomes_and_goes_later",
        ),
    ),
    Bug(
        name="locked_claim_not_tried_again",
        breaks="the row of a claim that was locked when its jobs had ended stays for as long as its worker claims nothing",
        promise=Promise.RECORD,
        edits=(Edit("worker/claim/ended_claims.py", "if ended or self._others_left:", "if ended:"),),
        caught_by=(
            f"{ENDED}::test_a_claim_that_a_transaction_has_locked_holds_up_neither_other_claims_nor_outcomes_and_goes_later",
        ),
    ),
    Bug(
        name="refused_claim_stops_all",
        breaks="one claim whose row a trigger keeps stops the deletion of all others",
        promise=Promise.RECORD,
        edits=(
            Edit(
                "worker/claim/ended_claims.py",
                "for row in await self._refused.run(send))",
                "for row in [await send(Pick())])",
            ),
        ),
        caught_by=(f"{ENDED}::test_a_claim_that_postgresql_refuses_to_delete_stops_no_other_and_is_reported_once",),
    ),
    Bug(
        name="disowning_waits_for_locks",
        breaks="behind a pooler one locked job that its worker does not know holds up all outcomes of that worker",
        promise=Promise.BACK,
        edits=(Edit("store/sql/claims/disown_jobs.sql", " for no key update skip locked", ""),),
        caught_by=(LOCKED_UNKNOWN,),
    ),
    Bug(
        name="locked_unknown_job_not_looked_for",
        breaks="a job that was locked when its worker found that it does not run stays held for a minute",
        promise=Promise.BACK,
        edits=(Edit("worker/claim/held_jobs.py", "now if some_left else now + IDLE_EVERY", "now + IDLE_EVERY"),),
        caught_by=(LOCKED_UNKNOWN,),
    ),
    Bug(
        name="doubted_claim_commits_unseen",
        breaks="jobs of a claim that commits 11 s after its answer was lost are held by an idle worker for a minute",
        promise=Promise.BACK,
        edits=(Edit("worker/claim/held_jobs.py", "self._known.held or self._doubts or", "self._known.held or doubted or"),),
        caught_by=(f"{HELD}::test_while_a_claim_is_in_doubt_an_idle_worker_keeps_comparing",),
    ),
    Bug(
        name="pooled_settling_without_a_limit",
        breaks="behind a pooler one locked row holds up all outcomes of a worker",
        promise=Promise.BACK,
        edits=(Edit(SETTLER, "settling(group), within=within), set()", "settling(group), within=3600), set()"),),
        caught_by=(f"{SETTLING}::test_behind_a_pooler_a_locked_row_holds_up_no_other_outcome",),
    ),
    Bug(
        name="pooled_connection_without_a_limit",
        breaks="behind a pooler a statement that waits for a lock keeps the connection that settles until the lock is released",
        promise=Promise.BACK,
        edits=(Edit(ENGINE, "within = POOLED_LIMIT if database.pooled else None", "within = None"),),
        caught_by=(f"{SETTLING}::test_behind_a_pooler_every_statement_on_the_connection_that_settles_has_a_time_limit",),
    ),
    Bug(
        name="claims_never_forgotten",
        breaks="the rows of claims whose jobs have ended pile up for as long as their worker lives",
        promise=Promise.RECORD,
        edits=(Edit(ENGINE, "self._held_jobs.task, self._ended_claims.task)", "self._held_jobs.task)"),),
        caught_by=("tests/worker/test_ended_claims.py::test_no_row_is_left_of_claims_whose_jobs_have_ended",),
    ),
    Bug(
        name="held_jobs_not_compared",
        breaks="after a failover that lost its settlement, a job stays with a worker that has forgotten it",
        promise=Promise.OUTAGE,
        edits=(Edit(ENGINE, "*of_runs, self._held_jobs.task,", "*of_runs,"),),
        caught_by=(
            f"{HELD}::test_after_a_failover_that_lost_the_settlement_the_job_runs_again",
            f"{HELD}::test_a_worker_with_jobs_of_its_own_requeues_only_the_unknown_one",
        ),
    ),
    Bug(
        name="claims_under_way_not_known",
        breaks="jobs that are just being claimed are taken for forgotten ones, and run twice",
        promise=Promise.ONCE,
        edits=(
            Edit(
                "worker/claim/held_jobs.py",
                "return job in self._held or job.claim_id in self._claims",
                "return job in self._held",
            ),
        ),
        caught_by=("tests/interleavings/test_held.py::test_jobs_of_a_claim_whose_answer_is_under_way_are_not_requeued",),
    ),
    Bug(
        name="claimed_and_dropped",
        breaks="jobs that were claimed are forgotten when the claim of limited jobs after them fails",
        promise=Promise.ONCE,
        edits=(
            Edit(
                CLAIMS,
                "        except Exception:\n            if not runs:\n",
                "        except StoreUnavailable:\n            if not runs:\n",
            ),
            Edit(
                CLAIMS,
                "        except (StoreUnavailable, WorkerCondemned):\n            raise\n",
                "        except Exception:\n            raise\n",
            ),
        ),
        caught_by=(f"{HELD}::test_a_limited_claim_that_fails_does_not_drop_what_the_other_claim_took",),
    ),
    Bug(
        name="started_while_stopping",
        breaks="jobs of a claim that is in progress when its worker is asked to stop are started anyway",
        promise=Promise.BACK,
        edits=(
            Edit(
                ENGINE,
                "            if self._stopping:\n                self._slots.requeue(run)\n",
                "            if False:\n                pass\n",
            ),
        ),
        caught_by=(f"{HELD}::test_a_claim_that_is_still_under_way_when_the_worker_stops_costs_nothing",),
    ),
    Bug(
        name="slot_of_a_canceled_handler",
        breaks="a handler that cancels its own task keeps its slot and its job forever",
        promise=Promise.TIME,
        edits=(
            Edit(
                SLOTS,
                "            self._close(run, self._of_abort(run, error))  # the loop may be closing: nothing may be awaited\n",
                "",
            ),
            Edit(
                SLOTS,
                "            except (asyncio.CancelledError, Aborted) as error:\n",
                "            except (asyncio.CancelledError, Aborted) as error:\n"
                "                if run.abort_reason is None and run.task is not None and run.task.cancelling():\n"
                "                    raise\n",
            ),
            NEVER_CLOSED,
        ),
        caught_by=(f"{HELD}::test_a_handler_that_cancels_itself_fails_its_attempt_and_frees_its_slot",),
    ),
    Bug(
        name="slot_of_a_run_that_never_began",
        breaks="a run whose task is canceled before its first step keeps its slot and its job forever",
        promise=Promise.TIME,
        edits=(NEVER_CLOSED,),
        caught_by=(f"{HELD}::test_a_run_that_is_canceled_before_its_first_step_frees_its_slot",),
    ),
    Bug(
        name="stop_without_its_grace",
        breaks="outcomes are dropped when PostgreSQL is unavailable at the moment of the stop, though there is time left",
        promise=Promise.OUTAGE,
        edits=(Edit(ENGINE, "        await self._slots.settled(self._stop_by - time.monotonic())\n", ""),),
        caught_by=(f"{STOPS}::test_outcomes_are_written_when_the_server_returns_within_the_grace",),
    ),
    Bug(
        name="write_cut_off_by_the_stop",
        breaks="a job that completes while its worker stops is reported as lost, or not at all",
        promise=Promise.RECORD,
        edits=(
            Edit(
                ENGINE,
                "        await self._slots.settled(self._stop_by - time.monotonic())\n        for periodic in self._tasks:\n"
                "            await self._ended(periodic, END_PATIENCE)\n",
                "        for task in self._tasks.values():\n            task.cancel()\n"
                "        await asyncio.gather(*self._tasks.values(), return_exceptions=True)\n",
            ),
        ),
        caught_by=(f"{STOPS}::test_a_job_that_ends_while_the_worker_stops_is_reported_as_settled",),
    ),
    Bug(
        name="heartbeat_of_a_changed_row_believed",
        breaks="a heartbeat that missed its row, because the row had just changed, counts as written, and the lease expires",
        promise=Promise.BACK,
        edits=(
            Edit("store/sql/jobs/write_updates.sql", "\n where o.lease is null or o.id in (select e.id from extended e)\n", "\n"),
        ),
        caught_by=(f"{ORPHANS}::test_a_heartbeat_that_meets_a_changed_row_is_not_reported_as_written",),
    ),
)
