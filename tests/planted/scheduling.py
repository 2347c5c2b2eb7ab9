"""Bugs in what becomes of planned times, and in the counts and cleaning that are done beside."""

from __future__ import annotations

from tests.planted.bug import Bug, Edit, Promise

RECORD, RELEASE, CLEAN, RECONCILE, RUN = (
    f"store/sql/schedules/{name}.sql"
    for name in ("record_ticks", "release_ticks", "clean_ticks", "reconcile_schedules", "run_schedule")
)
DECIDE = "model/ticks.py"
MERGE, CLEAN_DEAD = "store/sql/cleaning/merge_tallies.sql", "store/sql/cleaning/clean_dead.sql"
TERMS, CRON, CARETAKING = "tests/leader/test_terms.py", "tests/leader/test_cron.py", "tests/store/test_cleaning.py"

BUGS = (
    Bug(
        name="fleet_minute_without_a_term",
        breaks="a leader that was deposed records the fleet as it sees it, and the minute of the current leader is lost",
        promise=Promise.LEADERS,
        edits=(
            Edit(
                "store/sql/stats/record_fleet.sql",
                "     where exists (select from leader)\n    on conflict",
                "    on conflict",
            ),
        ),
        caught_by=(f"{TERMS}::test_a_leader_of_an_older_term_writes_nothing",),
    ),
    Bug(
        name="ticks_without_a_term",
        breaks="a leader that was suspended while another was elected continues to enqueue scheduled jobs",
        promise=Promise.LEADERS,
        edits=(Edit(RECORD, "s.retired_at is null and exists (select from leader)\n", "s.retired_at is null\n"),),
        caught_by=(
            f"{TERMS}::test_a_leader_of_an_older_term_writes_nothing",
            f"{CRON}::test_a_leader_that_was_asleep_while_another_was_elected_records_nothing",
        ),
    ),
    Bug(
        name="line_without_a_term",
        breaks="a leader that was deposed moves lines on",
        promise=Promise.LEADERS,
        edits=(Edit(RELEASE, "t.outcome = 'queued' and exists (select from leader)\n", "t.outcome = 'queued'\n"),),
        caught_by=(f"{TERMS}::test_a_leader_of_an_older_term_writes_nothing",),
    ),
    Bug(
        name="ticks_of_another_version",
        breaks="what was decided of a schedule is written although it was changed meanwhile",
        promise=Promise.TIME,
        edits=(Edit(RECORD, "where s.version = m.version and s.paused_at", "where s.paused_at"),),
        caught_by=(f"{CRON}::test_what_is_decided_between_a_look_and_its_record_counts",),
    ),
    Bug(
        name="line_of_another_version",
        breaks="a line moves on although a run of its schedule was asked for in this moment",
        promise=Promise.TIME,
        edits=(Edit(RELEASE, "where s.version = w.version and s.paused_at", "where s.paused_at"),),
        caught_by=(f"{CRON}::test_a_line_is_not_moved_on_while_a_run_is_asked_for",),
    ),
    Bug(
        name="job_after_its_tick",
        breaks="a leader that dies between a tick and its job leaves a time that has no job and never will",
        promise=Promise.DURABLE,
        edits=(
            Edit(
                RECORD,
                "    select e.id from tenure.enqueue((select",
                "    select a.planned_at from new_jobs a where '' <> (select",
            ),
            Edit(
                RECORD,
                "'[]')::text from new_jobs a)) e),\nupdated_schedules",
                "'[]')::text from new_jobs a)),\nupdated_schedules",
            ),
            Edit(
                RECORD,
                "       (select count(*) from enqueued) as enqueued,\n",
                "       (select count(*) from enqueued) as enqueued,\n"
                "       (select jsonb_agg(a.job order by a.planned_at)::text from new_jobs a) as new_jobs,\n",
            ),
            Edit(
                "leader/duties/cron.py",
                "            _require_term(recorded.holds)\n",
                "            _require_term(recorded.holds)\n"
                "            if recorded.new_jobs:\n                await link.fetch(jobs.enqueue(recorded.new_jobs))\n",
            ),
            Edit(
                "leader/duties/cron.py",
                "from tenure.store import leases, schedules\n",
                "from tenure.store import jobs, leases, schedules\n",
            ),
            Edit(
                "store/schedules.py",
                '    queues: list[str]\n    """Of the jobs that are pending."""\n',
                '    new_jobs: str | None\n    queues: list[str]\n    """Of the jobs that are pending."""\n',
            ),
        ),
        caught_by=(f"{CRON}::test_two_thousand_ticks_over_twenty_leaders_are_recorded_once_each",),
    ),
    Bug(
        name="time_recorded_again",
        breaks="after the clock was set back, planned times that had a job get another one",
        promise=Promise.ONCE,
        edits=(
            Edit(
                RECORD,
                "    on conflict (schedule, planned_at) do nothing\n",
                "    on conflict (schedule, planned_at) do update set outcome = excluded.outcome, job_id = excluded.job_id\n",
            ),
        ),
        caught_by=(f"{CRON}::test_a_clock_that_goes_back_brings_no_time_again",),
    ),
    Bug(
        name="skip_does_not_look",
        breaks="a job is enqueued while an earlier one of its schedule runs",
        promise=Promise.TIME,
        edits=(Edit(RECORD, "when w.overlap = 'allow' or (", "when w.overlap in ('allow', 'skip') or ("),),
        caught_by=(f"{CRON}::test_skip_leaves_out_what_comes_while_an_earlier_job_is_live",),
    ),
    Bug(
        name="stopped_by_a_dead_letter",
        breaks="a dead letter stops its schedule for good",
        promise=Promise.TIME,
        edits=(Edit(RECORD, "limit 1) <> 'dead_letter') as live", "limit 1) is not null) as live"),),
        caught_by=(f"{CRON}::test_a_dead_letter_does_not_stop_its_schedule",),
    ),
    Bug(
        name="line_from_its_end",
        breaks="of times that wait in line, the latest is enqueued first",
        promise=Promise.ORDER,
        edits=(Edit(RELEASE, "     order by t.schedule, t.planned_at),\n", "     order by t.schedule, t.planned_at desc),\n"),),
        caught_by=(f"{CRON}::test_overlap_queue_enqueues_one_after_the_other_in_order_and_loses_none",),
    ),
    Bug(
        name="missed_not_recorded",
        breaks="planned times that passed without a leader are not recorded",
        promise=Promise.RECORD,
        edits=(Edit(DECIDE, "missed = Missed(old[0], old[-1], len(old)) if old else None", "missed = None"),),
        caught_by=(f"{CRON}::test_after_downtime_as_the_policy_has_it",),
    ),
    Bug(
        name="all_without_a_limit",
        breaks="after a long downtime a schedule enqueues all missed jobs at once",
        promise=Promise.TIME,
        edits=(Edit(DECIDE, "        return times[-schedule.catch_up_limit :]\n", "        return times\n"),),
        caught_by=(f"{CRON}::test_all_has_a_limit",),
    ),
    Bug(
        name="waiting_ticks_cleaned",
        breaks="times that wait in line for long are forgotten",
        promise=Promise.DURABLE,
        edits=(Edit(CLEAN, "and t.outcome <> 'queued' and (:only", "and (:only"),),
        caught_by=(f"{CRON}::test_old_ticks_go_but_not_those_of_live_jobs_or_in_line",),
    ),
    Bug(
        name="retires_what_others_declared",
        breaks="an app that starts ends the schedules of another",
        promise=Promise.CONTROL,
        edits=(
            Edit(RECONCILE, "or (s.owner = :owner::text and s.retired_at is null)\n", "or s.retired_at is null\n"),
            Edit(RECONCILE, "s.name = m.name and m.owner = :owner::text and m.retired_at", "s.name = m.name and m.retired_at"),
        ),
        caught_by=("tests/store/test_reconcile.py::test_apps_do_not_retire_each_others_nor_what_was_made_by_hand",),
    ),
    Bug(
        name="asked_for_again",
        breaks="a run whose answer was lost is recorded twice",
        promise=Promise.RECORD,
        edits=(
            Edit(
                RUN,
                "      from schedule_row h\n     where not exists (select from existing_tick)\n",
                "      from schedule_row h\n",
            ),
        ),
        caught_by=("tests/client/test_schedules.py::test_a_run_whose_answer_was_lost_is_not_enqueued_twice",),
    ),
    Bug(
        name="dead_letters_by_their_entry",
        breaks="the age of a dead letter is counted from its enqueue, so it may be removed right after it failed",
        promise=Promise.RECORD,
        edits=(Edit(CLEAN_DEAD, "coalesce(j.started_at, j.enqueued_at) <", "j.enqueued_at <"),),
        caught_by=(f"{CARETAKING}::test_dead_letters_go_when_their_own_time_is_over",),
    ),
    Bug(
        name="counted_twice",
        breaks="what was added to the counts is added again by the next round",
        promise=Promise.RECORD,
        edits=(
            Edit(
                MERGE,
                "    delete from tenure.tallies t\n"
                "     where t.ctid = any (array(select k.tid from oldest k where not :peek::boolean))\n"
                "    returning t.*),",
                "    select t.*\n      from tenure.tallies t\n"
                "     where t.ctid = any (array(select k.tid from oldest k where not :peek::boolean))),",
            ),
        ),
        caught_by=(f"{CARETAKING}::test_what_is_being_merged_is_seen_once_and_counted_once",),
    ),
    Bug(
        name="late_minutes_lost",
        breaks="after an hour without a leader the counts of its minutes are missing",
        promise=Promise.RECORD,
        edits=(
            Edit(
                MERGE,
                "      from merged m\n     group by 1, 2, 3, 4\n     order by 1, 2, 3, 4\n    on conflict (minute,",
                "      from merged m\n     where m.at > now() - interval '1 hour'\n     group by 1, 2, 3, 4\n"
                "     order by 1, 2, 3, 4\n    on conflict (minute,",
            ),
        ),
        caught_by=(f"{CARETAKING}::test_tallies_are_added_up_by_the_minute_with_their_latencies",),
    ),
    Bug(
        name="clock_ahead_believed",
        breaks="a clock that was ahead for a moment stops a schedule until that time has come",
        promise=Promise.TIME,
        edits=(
            Edit(
                "store/sql/schedules/rewind_schedules.sql",
                "make_interval(secs => :grace::float8) and exists (select from leader)",
                "make_interval(secs => :grace::float8) and false",
            ),
        ),
        caught_by=(f"{CRON}::test_a_clock_that_was_ahead_for_a_round_does_not_stop_the_schedule",),
    ),
    Bug(
        name="one_name_one_app",
        breaks="two services of the same name retire each other's schedules",
        promise=Promise.CONTROL,
        edits=(Edit(RECONCILE, "       and m.ours and not exists (\n", "       and not exists (\n"),),
        caught_by=("tests/store/test_reconcile.py::test_two_apps_of_one_name_do_not_retire_each_others_schedules",),
    ),
)
