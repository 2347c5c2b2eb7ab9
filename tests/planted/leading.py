"""Bugs in what is done once for all."""

from __future__ import annotations

from tests.planted.bug import Bug, Edit, Promise

PROMOTE = "store/sql/jobs/promote_jobs.sql"
ACQUIRE = "store/sql/leases/acquire_leases.sql"
TERMS, DUTIES = "tests/leader/test_terms.py", "tests/leader/test_duties.py"
GUARD = "l.holder = :holder::uuid and l.term = :term::bigint and l.expires_at > clock_timestamp()"

BUGS = (
    Bug(
        name="promote_without_a_term",
        breaks="a stager that was deposed goes on promoting",
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
        breaks="a reaper that was asleep condemns workers that another has seen alive",
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
        edits=(Edit("store/sql/history/keep_history.sql", GUARD, GUARD.replace("l.term = :term::bigint and ", "")),),
        caught_by=(f"{TERMS}::test_a_leader_that_won_its_duty_again_writes_nothing_under_its_older_term",),
    ),
    Bug(
        name="lease_taken_while_held",
        breaks="two that stand for a free duty at the same time both win it",
        promise=Promise.LEADERS,
        edits=(
            Edit(
                ACQUIRE, "where l.expires_at <= clock_timestamp() or l.holder = excluded.holder or :forced::boolean", "where true"
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
            Edit(
                "store/sql/leases/release_leases.sql",
                "where l.name = h.name and l.holder = :holder::uuid and l.term = h.term and",
                "where l.name = h.name and",
            ),
        ),
        caught_by=(f"{TERMS}::test_only_the_holder_of_the_term_can_release_it",),
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
        name="retry_keeps_its_place",
        breaks="a job that failed goes before all that came since, and below the cursors of the workers",
        promise=Promise.ORDER,
        edits=(
            Edit(
                PROMOTE,
                "set state = 'pending', position = p.position",
                "set state = 'pending', position = coalesce(nullif(j.position, 0), p.position)",
            ),
        ),
        caught_by=(f"{DUTIES}::test_a_job_that_is_tried_again_stands_behind_those_that_came_meanwhile",),
    ),
    Bug(
        name="live_key_cleaned",
        breaks="the key of a job that is still to be done is removed when its window is over",
        promise=Promise.KEYS,
        edits=(
            Edit(
                "store/sql/control/clean_keys.sql",
                "       and (select j.id from tenure.jobs j where j.id = k.job_id limit 1) is null\n     order by k.expires_at",
                "     order by k.expires_at",
            ),
        ),
        caught_by=("tests/store/test_control_caretaking.py::test_keys_go_when_nothing_stands_behind_them_any_more",),
    ),
)
