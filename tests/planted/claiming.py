"""Bugs in how jobs are found and claimed."""

from __future__ import annotations

from tests.planted.bug import Bug, Edit, Promise

CLAIM = "store/sql/jobs/claim_jobs.sql"
CURSORS, ENGINE = "worker/claim/cursors.py", "worker/engine.py"
STORE, LATE = "tests/store/test_claims.py", "tests/worker/test_late_arrivals.py"

BUGS = (
    Bug(
        name="draining_ignored",
        breaks="a worker that is taken out of service continues to claim jobs",
        promise=Promise.CONTROL,
        edits=(Edit(CLAIM, "exists (select from holder h where h.takes)", "exists (select from holder)"),),
        caught_by=(f"{STORE}::test_a_draining_worker_claims_nothing_and_passes_over_nothing",),
    ),
    Bug(
        name="draining_moves_the_cursors",
        breaks="jobs that waited while their worker drained are found late when it claims again",
        promise=Promise.ORDER,
        edits=(Edit(CLAIM, "case when exists (select from holder h where not h.takes)", "case when false"),),
        caught_by=(f"{STORE}::test_a_draining_worker_claims_nothing_and_passes_over_nothing",),
    ),
    Bug(
        name="claim_without_locks",
        breaks="two workers that search at the same time claim the same jobs",
        promise=Promise.ONCE,
        edits=(
            Edit(CLAIM, "select j.ctid as tid", "select j.id as tid"),
            Edit(CLAIM, "           for no key update skip locked) c", "        ) c"),
            Edit(
                CLAIM,
                "where j.ctid = any (array(select p.tid from picked p))",
                "where j.id = any (array(select p.tid from picked p))",
            ),
        ),
        caught_by=(f"{STORE}::test_claimers_at_the_same_time_never_share_a_job",),
    ),
    Bug(
        name="claim_not_noted",
        breaks="jobs are held under a claim that has no row, so that they are never requeued",
        promise=Promise.BACK,
        edits=(Edit(CLAIM, "having count(*) > 0", "having false"),),
        caught_by=(f"{STORE}::test_what_a_claim_writes",),
        shows_at_once=True,
    ),
    Bug(
        name="claim_waits_for_locks",
        breaks="one locked job holds up every worker of its queue",
        promise=Promise.ORDER,
        edits=(Edit(CLAIM, "for no key update skip locked) c", "for no key update) c"),),
        caught_by=(f"{STORE}::test_locked_jobs_are_skipped_and_the_limit_is_filled_from_the_others",),
    ),
    Bug(
        name="refused_job_not_left_out",
        breaks="jobs that PostgreSQL refuses to claim keep the slots of the jobs behind them",
        promise=Promise.ORDER,
        edits=(Edit(CLAIM, "j.id not in (select unnest(:refused::uuid[]))", "cardinality(:refused::uuid[]) >= 0"),),
        caught_by=("tests/worker/test_refused_claims.py::test_more_refused_jobs_than_slots_hold_up_no_other",),
    ),
    Bug(
        name="refused_claim_not_isolated",
        breaks="one job that PostgreSQL refuses to claim stops every queue of its worker",
        promise=Promise.ORDER,
        edits=(Edit("worker/claim/claimer.py", "return await self._claim_others(limit)", "raise"),),
        caught_by=(
            "tests/worker/test_refused_claims.py::test_a_job_that_cannot_be_claimed_holds_up_no_other_and_is_reported_once[open-AU001]",
        ),
    ),
    Bug(
        name="refused_kinds_isolated_together",
        breaks="the jobs of a kind that PostgreSQL refuses to claim delay all other kinds",
        promise=Promise.ORDER,
        edits=(Edit("worker/claim/refused_jobs.py", "return list(reversed(kinds.values()))", "return [jobs] if jobs else []"),),
        caught_by=("tests/worker/test_refused_claims.py::test_a_kind_that_is_refused_delays_no_other_kind",),
    ),
    Bug(
        name="refused_limits_locked_together",
        breaks="while jobs under one limit are refused, other workers find all other limits locked",
        promise=Promise.ORDER,
        edits=(Edit("worker/claim/limited_claimer.py", "if name in wanted]", "if wanted]"),),
        caught_by=(
            "tests/worker/test_refused_claims.py::test_while_one_limit_is_refused_other_limits_are_left_to_other_workers[limited]",
        ),
    ),
    Bug(
        name="limit_per_lane",
        breaks="a claim takes as many jobs of each priority as there are slots in all",
        promise=Promise.ORDER,
        edits=(Edit(CLAIM, "skip locked) c\n     limit :limit::integer),", "skip locked) c),"),),
        caught_by=(f"{STORE}::test_a_claim_takes_its_limit_and_no_more_under_any_plan",),
    ),
    Bug(
        name="priority_ignored",
        breaks="urgent jobs wait behind jobs that were enqueued before them",
        promise=Promise.ORDER,
        edits=(Edit(CLAIM, "order by j.priority desc, j.position", "order by j.position"),),
        caught_by=(f"{STORE}::test_higher_priorities_come_first_and_equals_in_the_order_of_their_arrival",),
    ),
    Bug(
        name="claim_without_a_lease",
        breaks="a worker that was condemned continues to claim",
        promise=Promise.STALE,
        edits=(Edit(CLAIM, "w.id = :worker_id::uuid and w.died_at is null and", "w.id = :worker_id::uuid and"),),
        caught_by=(f"{STORE}::test_a_worker_without_a_lease_claims_nothing",),
    ),
    Bug(
        name="claim_without_the_share_lock",
        breaks="a job claimed while its worker is condemned stays held forever, and no process runs it",
        promise=Promise.BACK,
        edits=(
            Edit(
                CLAIM,
                "coalesce(:now::timestamptz, clock_timestamp())\n       for share),",
                "coalesce(:now::timestamptz, clock_timestamp())),",
            ),
        ),
        caught_by=("tests/store/test_orphans.py::test_a_condemnation_waits_for_the_claim_under_way",),
    ),
    Bug(
        name="no_sweep_below_the_cursor",
        breaks="a job whose transaction committed late waits for the full sweep",
        promise=Promise.ORDER,
        edits=(Edit(CURSORS, "sweep = full or now >= self._next_sweep", "sweep = full"),),
        caught_by=(f"{LATE}::test_all_jobs_of_a_late_commit_are_found_without_waiting_for_a_full_sweep",),
    ),
    Bug(
        name="floor_too_high",
        breaks="the floor rises over positions whose transactions are still under way",
        promise=Promise.ORDER,
        edits=(Edit(CURSORS, "self._marks.append((self.seen, reply.xid))", "self._marks.append((reply.position, reply.xid))"),),
        caught_by=(
            "tests/worker/test_cursors.py::test_the_floor_does_not_trust_a_position_that_was_read_after_the_claim_had_its_number",
        ),
    ),
    Bug(
        name="position_before_the_transaction_id",
        breaks="a job with a position, of a transaction without a number yet, is passed by the floor",
        promise=Promise.ORDER,
        edits=(
            Edit(
                "store/functions/enqueue.sql",
                "    begun xid8 := pg_current_xact_id();\n",
                "",
            ),
        ),
        caught_by=("tests/store/test_enqueue.py::test_a_transaction_has_its_number_before_its_jobs_have_their_places",),
    ),
    Bug(
        name="position_of_one_before_the_transaction_id",
        breaks="the same for a single plain job",
        promise=Promise.ORDER,
        edits=(Edit("store/functions/enqueue_one.sql", "    begun xid8 := pg_current_xact_id();\n", ""),),
        caught_by=("tests/store/test_enqueue.py::test_a_transaction_has_its_number_before_its_jobs_have_their_places",),
    ),
    Bug(
        name="cursor_never_rewound",
        breaks="jobs that were requeued below the cursor wait for the full sweep",
        promise=Promise.BACK,
        edits=(Edit(CURSORS, "if missed or returned:", "if missed:"),),
        caught_by=(f"{LATE}::test_returned_jobs_below_the_cursor_are_found",),
    ),
    Bug(
        name="returns_not_told",
        breaks="a job that a worker requeued is not looked for by the others",
        promise=Promise.BACK,
        edits=(Edit("store/sql/jobs/move_jobs.sql", "where m.state = 'pending'", "where m.state = 'retry'"),),
        caught_by=("tests/store/test_settling.py::test_a_requeued_job_keeps_its_position_and_its_queue_is_announced",),
    ),
    Bug(
        name="notify_only",
        breaks="without a notification no worker looks for jobs",
        promise=Promise.ORDER,
        edits=(
            Edit(
                ENGINE,
                "return min(self._settings.poll_busy if runs else self._idle_rest(), self._claimer.rest)",
                "return FOREVER",
            ),
        ),
        caught_by=("tests/worker/test_polling.py::test_jobs_without_a_notification_are_found_by_polling",),
    ),
    Bug(
        name="wake_up_swallowed",
        breaks="a wake-up that comes while a claim is under way is forgotten",
        promise=Promise.ORDER,
        edits=(
            Edit(
                "periodic.py",
                "            self._woken.clear()\n            rest = await self._once()\n",
                "            rest = await self._once()\n            self._woken.clear()\n",
            ),
        ),
        caught_by=("tests/test_periodic.py::test_a_wake_up_during_a_turn_is_not_lost",),
    ),
    Bug(
        name="lost_claim_forgotten",
        breaks="jobs of a claim whose answer was lost are held by a worker that does not know them",
        promise=Promise.OUTAGE,
        edits=(Edit("worker/claim/held_jobs.py", "if unknown or doubted else 0", "if False else 0"),),
        caught_by=("tests/outages/test_lost_answers.py::test_a_claim_whose_answer_was_lost_does_not_strand_its_jobs",),
    ),
    Bug(
        name="positions_of_another_server",
        breaks="after a failover to a replica that lagged, jobs below what was learnt before wait for the full sweep",
        promise=Promise.ORDER,
        edits=(
            Edit(
                CURSORS,
                "        if reply.position < self._floor.seen or reply.xid < self._floor.xid:\n"
                "            self._forget_positions()\n",
                "",
            ),
        ),
        caught_by=("tests/worker/test_cursors.py::test_when_positions_or_transactions_go_back_everything_is_looked_at_again",),
    ),
)
