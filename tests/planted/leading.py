"""Bugs in what is done once for all."""

from __future__ import annotations

from tests.planted.bug import Bug, Edit, Promise

PROMOTE = "store/sql/jobs/promote_jobs.sql"
ACQUIRE = "store/sql/leases/acquire_leases.sql"
BEAT, RELEASE = "store/sql/leases/beat_leases.sql", "store/sql/leases/release_leases.sql"
LEADER, HELD = "leader/leader.py", "leader/terms.py"
TERMS, DUTIES = "tests/leader/test_terms.py", "tests/leader/test_duties.py"
ELECTION = "tests/leader/test_election.py"
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
                RELEASE,
                "where l.name = h.name and l.holder = :holder::uuid and l.term = h.term and",
                "where l.name = h.name and",
            ),
        ),
        caught_by=(f"{TERMS}::test_only_the_holder_of_the_term_can_release_it",),
    ),
    Bug(
        name="heart_beats_for_any_term",
        breaks="a holder that lost its duty and won it again is told that its old term goes on",
        promise=Promise.LEADERS,
        edits=(Edit(BEAT, "l.holder = :holder::uuid and l.term = h.term and", "l.holder = :holder::uuid and"),),
        caught_by=(f"{ELECTION}::test_a_beat_under_an_older_term_renews_nothing",),
    ),
    Bug(
        name="heart_beats_after_the_end",
        breaks="a holder that was asleep for longer than its lease takes it up again",
        promise=Promise.LEADERS,
        edits=(Edit(BEAT, "l.term = h.term and l.expires_at > clock_timestamp()\n", "l.term = h.term\n"),),
        caught_by=(f"{ELECTION}::test_a_beat_renews_only_terms_that_hold",),
    ),
    Bug(
        name="leaves_without_a_word",
        breaks="a duty that was given back stays undone until somebody happens to ask for it",
        promise=Promise.LEADERS,
        edits=(Edit(RELEASE, "(select count(pg_notify(:channel, 'free')) from", "(select count(:channel::text) from"),),
        caught_by=(f"{ELECTION}::test_who_leaves_is_followed_at_once_by_whoever_hears_of_it",),
    ),
    Bug(
        name="word_overlooked_while_asking",
        breaks="a candidate that hears of a free duty while it asks goes by the older answer",
        promise=Promise.LEADERS,
        edits=(Edit(LEADER, "        if self._stand_at == due:\n", "        if due is not None:\n"),),
        caught_by=(f"{ELECTION}::test_what_a_candidate_hears_while_it_asks_is_newer_than_the_answer",),
    ),
    Bug(
        name="handed_over_to_nobody",
        breaks="a leader that is alone gives its duties up, again and again",
        promise=Promise.LEADERS,
        edits=(Edit(RELEASE, "where w.supervisor_id <> :holder::uuid and w.died_at", "where w.died_at"),),
        caught_by=(f"{ELECTION}::test_who_is_alone_keeps_its_duties",),
    ),
    Bug(
        name="lock_not_looked_at_again",
        breaks="a leader whose session broke goes on, though another has its lock by now",
        promise=Promise.LEADERS,
        edits=(Edit(LEADER, "        if not await self._election.may_lead(self._link):\n", "        if not beating:\n"),),
        caught_by=(f"{ELECTION}::test_a_lock_lost_with_its_session_is_noticed_by_the_next_heartbeat",),
    ),
    Bug(
        name="own_clock_not_asked",
        breaks="a holder that could not renew its lease goes on until somebody refuses it",
        promise=Promise.LEADERS,
        edits=(
            Edit(LEADER, "        if held.left <= 0:\n", "        if held.left <= -held.term.ttl:\n"),
            Edit(HELD, "asyncio.timeout(max(0.0, self.left)) as", "asyncio.timeout(max(self.term.ttl, self.left)) as"),
        ),
        caught_by=(f"{ELECTION}::test_a_holder_that_cannot_renew_stops_acting_before_its_term_ends",),
    ),
    Bug(
        name="round_not_cut_off",
        breaks="a round that hangs goes on after its term is over",
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
