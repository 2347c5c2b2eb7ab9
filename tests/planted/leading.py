"""Bugs in how leaders are elected, and in what one process does for all."""

from __future__ import annotations

from tests.planted.bug import Bug, Edit, Promise

PROMOTE = "store/sql/jobs/promote_jobs.sql"
ACQUIRE = "store/sql/leases/acquire_leases.sql"
BEAT, RELEASE = "store/sql/leases/beat_leases.sql", "store/sql/leases/release_leases.sql"
LEADER, HELD = "leader/leader.py", "leader/terms.py"
MAKE_HISTORY, MAKE_HISTORY_DAY, DROP_HISTORY = (
    f"store/functions/{name}.sql" for name in ("make_history", "make_history_day", "drop_history")
)
TERMS, DUTIES = "tests/leader/test_terms.py", "tests/leader/test_duties.py"
ELECTION = "tests/leader/test_election.py"
REFUSED = "tests/leader/test_refused_rows.py"
GUARD = "l.holder = :holder::uuid and l.term = :term::bigint and l.expires_at > clock_timestamp()"

BUGS = (
    Bug(
        name="promote_without_a_term",
        breaks="a stager that was deposed continues to promote jobs",
        promise=Promise.LEADERS,
        edits=(
            Edit(
                PROMOTE,
                "coalesce(:now::timestamptz, now()) and exists (select from leader)\n",
                "coalesce(:now::timestamptz, now())\n",
            ),
        ),
        caught_by=(f"{TERMS}::test_a_leader_of_an_older_term_writes_nothing",),
    ),
    Bug(
        name="condemn_without_a_term",
        breaks="a reaper that was suspended condemns workers that another reaper has seen alive",
        promise=Promise.LEADERS,
        edits=(
            Edit(
                "store/sql/workers/condemn_workers.sql",
                "and exists (select from leader) and :reap::boolean",
                "and :reap::boolean",
            ),
        ),
        caught_by=(f"{TERMS}::test_a_leader_of_an_older_term_writes_nothing",),
    ),
    Bug(
        name="history_kept_by_the_holder",
        breaks="a cleaner that lost its duty and won it again acts under its old term",
        promise=Promise.LEADERS,
        edits=(Edit("store/sql/history/make_history.sql", GUARD, GUARD.replace("l.term = :term::bigint and ", "")),),
        caught_by=(f"{TERMS}::test_a_leader_that_won_its_duty_again_writes_nothing_under_its_older_term",),
    ),
    Bug(
        name="rounds_wait_for_all_others",
        breaks="on a busy server the stager waits for the connection for as long as other duties pass it to each other",
        promise=Promise.LEADERS,
        edits=(Edit("leader/links.py", "left = min(latest, blocked) - ", "left = blocked - "),),
        caught_by=("tests/leader/test_links.py::test_rounds_that_follow_each_other_do_not_keep_another_one_waiting",),
    ),
    Bug(
        name="lease_taken_while_held",
        breaks="two candidates for a free duty at the same time both win it",
        promise=Promise.LEADERS,
        edits=(
            Edit(ACQUIRE, "     where :forced::boolean or not exists (", "     where true or not exists ("),
            Edit(
                ACQUIRE,
                "where l.expires_at <= clock_timestamp() or l.heartbeat_at > clock_timestamp() + interval '10 s'\n"
                "        or l.holder = excluded.holder or :forced::boolean",
                "where true",
            ),
        ),
        caught_by=(f"{TERMS}::test_two_at_the_same_time_do_not_both_win",),
    ),
    Bug(
        name="term_does_not_grow",
        breaks="the new holder of a duty and the old one have the same term",
        promise=Promise.LEADERS,
        edits=(
            Edit(
                ACQUIRE,
                "l.expires_at > clock_timestamp() then 0 else 1 end",
                "l.expires_at > clock_timestamp() then 0 else 0 end",
            ),
        ),
        caught_by=(f"{TERMS}::test_the_term_grows_with_every_holder",),
    ),
    Bug(
        name="leaves_for_another",
        breaks="a leader that leaves ends the term of its successor",
        promise=Promise.LEADERS,
        edits=(
            Edit(RELEASE, "on l.name = h.name and l.term = h.term\n", "on l.name = h.name\n"),
            Edit(RELEASE, "     where l.holder = :holder::uuid and l.expires_at", "     where l.expires_at"),
            Edit(
                RELEASE, "where l.name = o.name and l.holder = :holder::uuid and l.term = o.term and", "where l.name = o.name and"
            ),
        ),
        caught_by=(f"{TERMS}::test_only_the_holder_of_the_term_can_release_it",),
    ),
    Bug(
        name="heart_beats_for_any_term",
        breaks="a holder that lost its duty and won it again is answered with its old term",
        promise=Promise.LEADERS,
        edits=(Edit(BEAT, "l.holder = :holder::uuid and l.term = h.term and", "l.holder = :holder::uuid and"),),
        caught_by=(f"{ELECTION}::test_a_beat_under_an_older_term_renews_nothing",),
    ),
    Bug(
        name="renewed_after_the_end",
        breaks="a holder that was suspended for longer than its lease renews it",
        promise=Promise.LEADERS,
        edits=(Edit(BEAT, "l.term = h.term and l.expires_at > clock_timestamp()\n", "l.term = h.term\n"),),
        caught_by=(f"{ELECTION}::test_a_beat_renews_only_terms_that_hold",),
    ),
    Bug(
        name="released_without_a_notification",
        breaks="a duty that was released is not performed until a candidate happens to ask for it",
        promise=Promise.LEADERS,
        edits=(
            Edit(
                LEADER,
                "                if await self._link.fetch(leases.release_all(self.holder), within=RELEASE_PATIENCE):\n"
                "                    self._notify(Wakeup.duty_free())\n",
                "                await self._link.fetch(leases.release_all(self.holder))\n",
            ),
        ),
        caught_by=(f"{ELECTION}::test_a_leader_that_leaves_is_followed_at_once_by_a_notified_candidate",),
    ),
    Bug(
        name="hanging_round_keeps_its_duty",
        breaks="a leader whose round hangs takes its duty back at once, and no process performs it",
        promise=Promise.LEADERS,
        edits=(
            Edit(
                LEADER,
                "        stalled = [held for held in ours if held.round_age > STALLED]",
                "        stalled: list[HeldTerm] = []",
            ),
        ),
        caught_by=(f"{ELECTION}::test_a_duty_whose_round_hangs_goes_to_another_and_is_not_taken_back_at_once",),
    ),
    Bug(
        name="won_unanswered_and_kept",
        breaks="a duty that a leader won without receiving the answer is not released when the leader stops",
        promise=Promise.LEADERS,
        edits=(Edit(LEADER, "if self._held or self._may_have_won:", "if self._held:"),),
        caught_by=(f"{ELECTION}::test_what_an_unanswered_election_won_is_free_after_a_stop",),
    ),
    Bug(
        name="notification_overlooked_while_asking",
        breaks="a candidate that is notified of a free duty while it asks uses the older answer",
        promise=Promise.LEADERS,
        edits=(Edit(LEADER, "        if self._elect_at == due:\n", "        if due is not None:\n"),),
        caught_by=(f"{ELECTION}::test_what_a_candidate_hears_while_it_asks_is_newer_than_the_answer",),
    ),
    Bug(
        name="released_without_a_successor",
        breaks="a leader that is the only supervisor releases its duties, again and again",
        promise=Promise.LEADERS,
        edits=(Edit(RELEASE, "where w.supervisor_id <> :holder::uuid and w.died_at", "where w.died_at"),),
        caught_by=(f"{ELECTION}::test_a_leader_without_other_candidates_keeps_its_duties",),
    ),
    Bug(
        name="lock_not_looked_at_again",
        breaks="a leader whose session broke continues, though another process has its lock by now",
        promise=Promise.LEADERS,
        edits=(Edit(LEADER, "        if not await self._election.may_lead(self._link):\n", "        if not kept:\n"),),
        caught_by=(f"{ELECTION}::test_a_lock_lost_with_its_session_is_noticed_by_the_next_heartbeat",),
    ),
    Bug(
        name="own_clock_not_asked",
        breaks="a holder that could not renew its lease continues until a statement is refused",
        promise=Promise.LEADERS,
        edits=(
            Edit(LEADER, "        if held.left <= 0:\n", "        if held.left <= -held.term.ttl:\n"),
            Edit(HELD, "asyncio.timeout(max(0.0, self.left)) as", "asyncio.timeout(max(self.term.ttl, self.left)) as"),
        ),
        caught_by=(f"{ELECTION}::test_a_holder_that_cannot_renew_stops_acting_before_its_term_ends",),
    ),
    Bug(
        name="round_not_cut_off",
        breaks="a round that hangs continues after its term is over",
        promise=Promise.LEADERS,
        edits=(Edit(HELD, "asyncio.timeout(max(0.0, self.left)) as", "asyncio.timeout(None) as"),),
        caught_by=(f"{ELECTION}::test_a_round_is_cut_off_when_the_time_is_over",),
    ),
    Bug(
        name="promoted_early",
        breaks="jobs run before their time",
        promise=Promise.TIME,
        edits=(
            Edit(
                PROMOTE,
                "j.run_at <= coalesce(:now::timestamptz, now()) and exists",
                "j.run_at <= coalesce(:now::timestamptz, now()) + interval '3 s' and exists",
            ),
        ),
        caught_by=(f"{DUTIES}::test_a_job_is_promoted_when_it_is_due_and_not_before",),
    ),
    Bug(
        name="retry_goes_first",
        breaks="a job that failed is placed before all jobs that wait, and below the cursors of the workers",
        promise=Promise.ORDER,
        edits=(
            Edit(
                PROMOTE,
                "set state = 'pending', position = p.position",
                "set state = 'pending', position = coalesce((select nullif(min(w.position) - 1, 0) from tenure.jobs w"
                " where w.state = 'pending' and w.queue = j.queue), p.position)",
            ),
        ),
        caught_by=(f"{DUTIES}::test_a_job_that_is_retried_is_behind_those_that_were_enqueued_meanwhile",),
    ),
    Bug(
        name="live_key_cleaned",
        breaks="the key of a job that is still to be done is removed when its window is over",
        promise=Promise.KEYS,
        edits=(
            Edit(
                "store/sql/cleaning/clean_keys.sql",
                "       and (select j.id from tenure.jobs j where j.id = k.job_id limit 1) is null\n     order by k.expires_at",
                "     order by k.expires_at",
            ),
        ),
        caught_by=("tests/store/test_cleaning.py::test_keys_go_when_nothing_stands_behind_them_any_more",),
    ),
    Bug(
        name="duties_share_one_connection",
        breaks="a table that is locked holds up every duty of the fleet",
        promise=Promise.LEADERS,
        edits=(
            Edit("leader/links.py", "PATIENCE = 2.0\n", "PATIENCE = 3600.0\n"),
            Edit("leader/links.py", "LONGEST_WAIT = 1.0\n", "LONGEST_WAIT = 3600.0\n"),
        ),
        caught_by=("tests/leader/test_links.py::test_a_locked_table_delays_the_duty_that_needs_it_and_no_other",),
    ),
    Bug(
        name="heartbeat_waits_for_its_duty",
        breaks="a leader whose statement is held up cannot renew its lease, and loses it",
        promise=Promise.LEADERS,
        edits=(
            Edit(
                PROMOTE,
                "l.expires_at > clock_timestamp()\n       for key share),\ndue as",
                "l.expires_at > clock_timestamp()\n       for share),\ndue as",
            ),
        ),
        caught_by=("tests/leader/test_links.py::test_a_heartbeat_does_not_wait_for_a_statement_of_its_duty",),
    ),
    Bug(
        name="one_bad_row_stops_promotion",
        breaks="a scheduled job that PostgreSQL refuses to change stops the promotion of all others",
        promise=Promise.TIME,
        edits=(
            Edit("leader/duties/stager.py", "answers = await self._refused.run(send)", "answers = [await send(ALL)]"),
            Edit(
                "leader/duties/stager.py", "from tenure.store.query import Pick\n", "from tenure.store.query import ALL, Pick\n"
            ),
        ),
        caught_by=("tests/leader/test_refused_rows.py::test_a_job_that_cannot_be_promoted_blocks_no_other_and_is_reported_once",),
    ),
    Bug(
        name="one_bad_row_stops_requeuing",
        breaks="a job that PostgreSQL refuses to change keeps all jobs of dead workers with them",
        promise=Promise.BACK,
        edits=(
            Edit("leader/requeue.py", "answers = await self._jobs.run(send)", "answers = [await send(ALL)]"),
            Edit("leader/requeue.py", "from tenure.store.query import Pick\n", "from tenure.store.query import ALL, Pick\n"),
        ),
        caught_by=("tests/leader/test_refused_rows.py::test_a_job_that_cannot_be_requeued_blocks_no_other",),
    ),
    Bug(
        name="one_bad_row_stops_condemning",
        breaks="a worker that PostgreSQL refuses to condemn keeps the jobs of all dead workers with them",
        promise=Promise.BACK,
        edits=(
            Edit("leader/duties/reaper.py", "answers = await self._uncondemned.run(send)", "answers = [await send(ALL)]"),
            Edit(
                "leader/duties/reaper.py", "from tenure.store.query import Pick\n", "from tenure.store.query import ALL, Pick\n"
            ),
        ),
        caught_by=(f"{REFUSED}::test_a_worker_that_cannot_be_condemned_blocks_no_other_and_is_reported_once",),
    ),
    Bug(
        name="condemning_around_a_bad_row_takes_all",
        breaks="while one worker is refused, a look that should change nothing condemns workers and fails for all",
        promise=Promise.BACK,
        edits=(
            Edit("store/sql/workers/condemn_workers.sql", "where w.id = e.id and not :peek::boolean\n", "where w.id = e.id\n"),
        ),
        caught_by=(f"{REFUSED}::test_a_worker_that_cannot_be_condemned_blocks_no_other_and_is_reported_once",),
    ),
    Bug(
        name="one_bad_row_stops_rewinding",
        breaks="a schedule that PostgreSQL refuses to change keeps all others waiting for a clock that was ahead",
        promise=Promise.TIME,
        edits=(
            Edit("leader/duties/cron.py", "await self._unrewound.run(send)", "await send(ALL)"),
            Edit("leader/duties/cron.py", "from tenure.store.query import Pick\n", "from tenure.store.query import ALL, Pick\n"),
        ),
        caught_by=(f"{REFUSED}::test_a_schedule_that_cannot_be_rewound_blocks_no_other",),
    ),
    Bug(
        name="refused_rows_forgotten",
        breaks="a row that was refused once is left out forever",
        promise=Promise.TIME,
        edits=(
            Edit(
                "store/isolation.py",
                "return {row for row, again_at in self._again_at.items() if again_at > now}",
                "return {row for row in self._again_at if now}",
            ),
        ),
        caught_by=("tests/leader/test_refused_rows.py::test_it_is_tried_again_later",),
    ),
    Bug(
        name="notify_inside_the_move",
        breaks="while the queue of notifications is full, no job is promoted",
        promise=Promise.TIME,
        edits=(
            Edit(
                PROMOTE,
                "(select coalesce(array_agg(distinct p.queue), '{}') from promoted p) as queues,",
                "(select coalesce(array_agg(distinct p.queue), '{}') from promoted p\n"
                "         where (select count(pg_notify('tenure', 'jobs ' || q.queue)) from promoted q) >= 0) as queues,",
            ),
        ),
        caught_by=(
            "tests/leader/test_full_notify.py::test_jobs_are_promoted_requeued_expired_and_planned_and_leases_are_released",
        ),
    ),
    Bug(
        name="partition_made_without_a_lock",
        breaks="a missing partition of history is never made while jobs finish",
        promise=Promise.RECORD,
        edits=(
            Edit(
                MAKE_HISTORY,
                "        lock table only tenure.history in access exclusive mode;\n        if exists",
                "        if exists",
            ),
            Edit(
                MAKE_HISTORY_DAY,
                "        lock table only tenure.history in share update exclusive mode;\n"
                "        lock table only tenure.history_default in access exclusive mode;\n",
                "",
            ),
        ),
        caught_by=("tests/store/test_history.py::test_a_missing_partition_is_made_while_jobs_finish_all_the_time",),
    ),
    Bug(
        name="partition_dropped_against_the_order_of_readers",
        breaks="a session that reads history while a partition is dropped deadlocks with the cleaner",
        promise=Promise.RECORD,
        edits=(
            Edit(
                DROP_HISTORY,
                "    lock table only tenure.history in access exclusive mode;\n    execute format('drop table",
                "    execute format('lock table only tenure.%I in access exclusive mode', partition_name);\n"
                "    execute format('drop table",
            ),
        ),
        caught_by=("tests/store/test_history.py::test_a_partition_is_not_locked_before_its_parent",),
    ),
    Bug(
        name="refused_event_stops_all",
        breaks="one event that a trigger refuses keeps every workflow that waits for an event",
        promise=Promise.TIME,
        edits=(Edit("store/sql/events/number_events.sql", "json_agg(u.id::text)", "json_agg(u.id)"),),
        caught_by=(f"{REFUSED}::test_an_event_that_cannot_be_placed_blocks_no_other",),
    ),
    Bug(
        name="ends_of_blocked_jobs_not_isolated",
        breaks="one job that a trigger keeps from ending keeps all others whose blocker failed",
        promise=Promise.CHAINS,
        edits=(
            Edit(
                "store/sql/blockers/end_blocked.sql",
                "from ready r where :peek::boolean) as peeked",
                "from ready r where not :peek::boolean) as peeked",
            ),
        ),
        caught_by=(f"{REFUSED}::test_a_job_that_cannot_be_ended_because_of_its_blocker_blocks_no_other",),
    ),
    Bug(
        name="checked_rows_begin_again_after_a_refusal",
        breaks="rows behind the first batch of a table are never removed while one row of it is refused",
        promise=Promise.RECORD,
        edits=(
            Edit(
                "store/sql/cleaning/clean_blocked.sql",
                "where d.job_id > :after::uuid and exists (select from leader)",
                "where d.job_id > :after::uuid and exists (select from leader)"
                " and (:only::uuid[] is null or d.job_id = any (:only::uuid[]))",
            ),
        ),
        caught_by=(f"{REFUSED}::test_a_table_that_is_checked_row_by_row_is_checked_to_its_end_around_a_bad_row[blocked]",),
    ),
)
