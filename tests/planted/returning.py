"""Bugs in how jobs are requeued that a worker cannot finish."""

from __future__ import annotations

from tests.planted.bug import ORDERS, PROPERTIES, Bug, Edit, Promise

RETURN = "store/sql/jobs/return_jobs.sql"
CONDEMN = "store/sql/workers/condemn_workers.sql"
SUPERVISOR, LIFE = "manager/supervisor.py", "manager/child_lifecycle.py"
EXPIRE = "store/sql/jobs/expire_jobs.sql"
ORPHANS, LEASES = "tests/store/test_orphans.py", "tests/manager/test_leases.py"
CLAIM_ROWS = "tests/store/test_claim_rows.py"
COUNTED = "tests/limits/test_held_groups.py::test_a_job_counts_while_it_is_held_and_not_a_moment_longer"

BUGS = (
    Bug(
        name="return_without_condemning",
        breaks="the jobs of living workers are given to others",
        promise=Promise.ONCE,
        edits=(Edit(RETURN, "where w.died_at is not null and (:worker_id", "where (:worker_id"),),
        caught_by=(f"{ORPHANS}::test_claims_condemnations_and_returns_at_the_same_time_leave_no_orphan",),
    ),
    Bug(
        name="renewal_overlooked",
        breaks="a worker that is renewing its lease is condemned anyway",
        promise=Promise.BACK,
        edits=(Edit(CONDEMN, ":reap::boolean\n       for no key update skip locked),", ":reap::boolean),"),),
        caught_by=(f"{ORPHANS}::test_the_reaper_leaves_a_worker_that_is_renewing_its_lease",),
    ),
    Bug(
        name="worker_row_removed_too_soon",
        breaks="a job that was locked when the jobs of its dead worker were requeued stays held forever",
        promise=Promise.BACK,
        edits=(
            Edit(
                RETURN,
                "and not exists (select from tenure.claims r where r.worker_id = d.id"
                " and r.id not in (select g.id from removed_claims g)))",
                ")",
            ),
        ),
        caught_by=(f"{ORPHANS}::test_a_worker_stays_as_long_as_a_locked_job_is_its_own",),
    ),
    Bug(
        name="claim_of_a_locked_job_removed",
        breaks="a job that was locked when the jobs of its dead worker were requeued is held under a claim that has no row",
        promise=Promise.BACK,
        edits=(Edit(RETURN, "where j.id not in (select n.id from released n))", "where false)"),),
        caught_by=(f"{CLAIM_ROWS}::test_a_dead_workers_claim_stays_while_one_of_its_jobs_is_locked",),
    ),
    Bug(
        name="quarantined_without_its_position",
        breaks="a job that kills its workers cannot be dead-lettered, and none of its worker's jobs are requeued",
        promise=Promise.BACK,
        edits=(Edit(RETURN, "position = case when h.quarantine is null then j.position else -1 end,", ""),),
        caught_by=(f"{ORPHANS}::test_a_crash_is_counted_but_uses_no_attempt_and_the_third_dead_letters_the_job",),
    ),
    Bug(
        name="expired_without_its_position",
        breaks="a job that lets its lease run out again and again cannot be dead-lettered",
        promise=Promise.BACK,
        edits=(Edit(EXPIRE, "position = case when l.quarantine is null then j.position else -1 end,", ""),),
        caught_by=(f"{COUNTED}[expired the third time]",),
    ),
    Bug(
        name="crash_is_an_attempt",
        breaks="the death of a worker uses an attempt of each of its jobs",
        promise=Promise.BACK,
        edits=(Edit(RETURN, "attempt = greatest(j.attempt - 1, 0)", "attempt = j.attempt"),),
        caught_by=(f"{ORPHANS}::test_a_crash_is_counted_but_uses_no_attempt_and_the_third_dead_letters_the_job",),
    ),
    Bug(
        name="no_quarantine",
        breaks="a job that kills its worker is given to the next one forever",
        promise=Promise.BACK,
        edits=(Edit("store/functions/quarantine.sql", "case when crashes >= most", "case when crashes > most"),),
        caught_by=(f"{ORPHANS}::test_a_crash_is_counted_but_uses_no_attempt_and_the_third_dead_letters_the_job",),
    ),
    Bug(
        name="quarantined_without_a_word",
        breaks="a client waits for a job that the reaper has quarantined until it looks again by itself",
        promise=Promise.TIME,
        edits=(
            Edit(
                "store/sql/fragments/job_endings.sql",
                "any (array(select e.id from ended e))",
                "any (array(select e.id from ended e where e.ran is not null))",
            ),
        ),
        caught_by=(
            "tests/leader/test_announcements.py::test_a_client_that_waits_for_a_job_learns_at_once_that_it_is_quarantined",
        ),
    ),
    Bug(
        name="condemned_worker_renewed",
        breaks="a worker whose jobs were requeued never learns of it",
        promise=Promise.STALE,
        edits=(
            Edit(
                "store/sql/workers/renew_workers.sql",
                "where w.id = any (:ids::uuid[]) and w.died_at is null",
                "where w.id = any (:ids::uuid[])",
            ),
        ),
        caught_by=(f"{ORPHANS}::test_a_condemned_worker_cannot_renew_its_lease",),
    ),
    Bug(
        name="sign_of_life_overlooked",
        breaks="a job that is sending a heartbeat is requeued anyway",
        promise=Promise.BACK,
        edits=(
            Edit(EXPIRE, "select j.ctid as tid", "select j.id as tid"),
            Edit(EXPIRE, "     limit :limit::integer\n       for no key update skip locked),", "     limit :limit::integer),"),
            Edit(EXPIRE, "where j.ctid = l.tid", "where j.id = l.tid"),
        ),
        caught_by=(f"{ORDERS}[leased: C1 sends heartbeat | time passes, H1 expires jobs | W2 works]",),
    ),
    Bug(
        name="expired_lease_is_no_crash",
        breaks="a job that never sends a heartbeat is given to one worker after the other forever",
        promise=Promise.BACK,
        edits=(Edit(EXPIRE, "crashes = j.crashes + 1, attempt", "attempt"),),
        caught_by=(PROPERTIES,),
    ),
    Bug(
        name="disowned_too_much",
        breaks="after a lost answer a worker requeues a job that another claim has taken since",
        promise=Promise.ONCE,
        edits=(
            Edit(
                "store/sql/claims/disown_jobs.sql",
                "where j.id = o.id and j.claim_id = o.claim_id",
                "where j.id = o.id and j.claim_id is not null",
            ),
        ),
        caught_by=(f"{ORDERS}[held: W1 disowns C1 | C1 requeues | W1 claims]",),
    ),
    Bug(
        name="one_bad_row_stops_disowning",
        breaks="an unknown job that PostgreSQL refuses to change keeps all others that its worker does not know",
        promise=Promise.BACK,
        edits=(
            Edit("worker/claim/held_jobs.py", "await self._refused.run(send)", "[await send(ALL)]"),
            Edit(
                "worker/claim/held_jobs.py", "from tenure.store.query import Pick\n", "from tenure.store.query import ALL, Pick\n"
            ),
        ),
        caught_by=(
            "tests/worker/test_held.py::test_an_unknown_job_that_cannot_be_requeued_holds_up_no_other_and_is_reported_once",
        ),
    ),
    Bug(
        name="one_bad_worker_costs_all_their_leases",
        breaks="a worker whose lease PostgreSQL refuses to renew costs all workers of its supervisor their leases",
        promise=Promise.BACK,
        edits=(Edit("store/renewals.py", "    await send_or_halve(ids, send, refuse)\n", "    await send(ids)\n"),),
        caught_by=("tests/store/test_renewals.py::test_a_worker_that_cannot_be_renewed_costs_no_other_its_lease",),
    ),
    Bug(
        name="unrenewed_taken_for_condemned",
        breaks="a worker whose lease could not be renewed once is taken for condemned, and its runs are aborted",
        promise=Promise.BACK,
        edits=(
            Edit(
                SUPERVISOR,
                "serving.keys() - renewal.renewed - renewal.refused.keys():",
                "serving.keys() - renewal.renewed:",
            ),
        ),
        caught_by=(f"{LEASES}::test_a_worker_whose_renewal_is_rejected_costs_no_other_its_lease_and_continues",),
    ),
    Bug(
        name="reaper_without_patience",
        breaks="after an outage the first worker that reconnects condemns all the others",
        promise=Promise.OUTAGE,
        edits=(Edit("leader/duties/reaper.py", "reap = self._contact.age >= self.patience", "reap = True"),),
        caught_by=("tests/leader/test_duties.py::test_the_reaper_condemns_only_after_unbroken_contact_of_its_own",),
    ),
    Bug(
        name="lease_for_the_lively",
        breaks="a handler that blocks its loop loses the lease of its process",
        promise=Promise.BACK,
        edits=(
            Edit(
                SUPERVISOR,
                "serving = {child.worker_id: child for child in self.children if child.serving}",
                "serving = {child.worker_id: child for child in self.children if child.serving and child.silence < 1.5}",
            ),
        ),
        caught_by=(f"{LEASES}::test_the_lease_of_a_process_whose_loop_is_blocked_is_renewed_all_the_same",),
    ),
    Bug(
        name="stalled_forever",
        breaks="a stalled process is kept alive, and its jobs with it",
        promise=Promise.BACK,
        edits=(Edit(SUPERVISOR, "                child.kill()\n        if os.getpid() == 1:", "        if os.getpid() == 1:"),),
        caught_by=(f"{LEASES}::test_a_child_frozen_beyond_the_stall_limit_is_killed_and_its_jobs_are_requeued",),
    ),
    Bug(
        name="scaled_down_in_a_hurry",
        breaks="jobs are cut short because there is one process too many",
        promise=Promise.BACK,
        edits=(Edit(LIFE, "self.child.stop(self.child.hello.drain if self.child.hello else 0.0)", "self.child.stop(0.0)"),),
        caught_by=("tests/manager/test_scaling.py::test_one_that_is_too_many_drains_for_longer_than_the_grace_of_a_shutdown",),
    ),
    Bug(
        name="drained_before_its_replacement_runs",
        breaks="a restart with code that cannot be loaded takes the old processes away",
        promise=Promise.BACK,
        edits=(
            Edit(
                "manager/pool.py",
                "            fresh = self._start_child(spare=True)\n",
                "            lifecycle.drain()\n            fresh = self._start_child(spare=True)\n",
            ),
        ),
        caught_by=("tests/manager/test_rolling.py::test_code_that_cannot_be_loaded_is_reported_and_the_old_processes_continue",),
    ),
    Bug(
        name="drain_outlasts_shutdown",
        breaks="a process that drains does not learn that the time is up, and its jobs are not aborted",
        promise=Promise.BACK,
        edits=(Edit("manager/child.py", "                self._engine.hurry(grace)\n", "                pass\n"),),
        caught_by=("tests/manager/test_rolling.py::test_a_shutdown_ends_a_drain_after_the_grace_period",),
    ),
    Bug(
        name="clean_up_cut_short",
        breaks="a second request to stop takes the time for their clean-up from aborted handlers",
        promise=Promise.BACK,
        edits=(Edit("worker/engine.py", "self._slots.cleaned_up(ABORT_PATIENCE)", "self._slots.drained(ABORT_PATIENCE)"),),
        caught_by=("tests/worker/test_aborts.py::test_a_second_request_to_stop_leaves_a_handler_its_time_to_clean_up",),
    ),
    Bug(
        name="clean_exit_is_no_crash",
        breaks="a handler that ends its process with exit code 0 is given the next one forever",
        promise=Promise.BACK,
        edits=(Edit(LIFE, '"stopped" if child.stopped_cleanly or', '"stopped" if child.exit_code == 0 or'),),
        caught_by=(
            "tests/manager/test_poison_pills.py::test_a_job_that_kills_its_worker_is_dead_lettered_and_its_neighbours_are_not[exits-input_1]",
        ),
    ),
    Bug(
        name="suspects_among_others",
        breaks="neighbors of a job that kills its worker are dead-lettered with it",
        promise=Promise.BACK,
        edits=(Edit("manager/spec.py", 'jobs: Which = "healthy"', 'jobs: Which = "all"'),),
        caught_by=(
            "tests/manager/test_poison_pills.py::test_a_job_that_kills_its_worker_is_dead_lettered_and_its_neighbours_are_not[kills_itself-input_2]",
        ),
    ),
    Bug(
        name="children_outlive_their_supervisor",
        breaks="handlers continue without a lease when their supervisor is gone",
        promise=Promise.STALE,
        edits=(
            Edit("manager/child.py", "    die_with(int(sys.argv[2]))\n", ""),
            Edit("manager/child.py", "        os._exit(0)  # the supervisor is gone, and the lease will expire\n", ""),
        ),
        caught_by=("tests/manager/test_crashes.py::test_children_do_not_outlive_their_supervisor",),
    ),
    Bug(
        name="blocked_children_outlive_their_supervisor",
        breaks="a process whose loop is blocked does not notice that its supervisor is gone",
        promise=Promise.STALE,
        edits=(Edit("manager/child.py", "    die_with(int(sys.argv[2]))\n", ""),),
        caught_by=("tests/manager/test_crashes.py::test_a_child_whose_loop_is_blocked_does_not_outlive_its_supervisor_either",),
    ),
    Bug(
        name="shutdown_spends_an_attempt",
        breaks="every deploy uses an attempt of the running jobs",
        promise=Promise.BACK,
        edits=(Edit("worker/run/settlement.py", '"requeued", refund=1)', '"requeued")'),),
        caught_by=("tests/worker/test_aborts.py::test_stopping_lets_runs_finish_and_requeues_the_others",),
    ),
)
