"""Bugs in how limits are kept."""

from __future__ import annotations

from tests.planted.bug import Bug, Edit, Promise

LOCK, CLAIM = "store/sql/limits/lock_limits.sql", "store/sql/limits/claim_limited.sql"
LIMIT_GROUP_OF = "store/functions/limit_group_of.sql"
CLAIMS, CHANGES, TURNS = (f"tests/limits/test_{name}.py" for name in ("limited_claims", "changes", "turns"))
RATES, WORKERS, MANY = (f"tests/limits/test_{name}.py" for name in ("rates", "workers", "many_claimers"))

HELD = "tests/limits/test_held_groups.py::test_a_job_counts_while_it_is_held_and_not_a_moment_longer"
CLEARED = "claim_id = null, held_group = null,"


def counted_after(file: str, how: str, way: str) -> Bug:
    return Bug(
        name=f"counted_after_it_was_{how}",
        breaks=f"a job that was {how} counts towards its limit forever, and is never claimed again",
        promise=Promise.LIMITS,
        edits=(Edit(f"store/sql/{file}.sql", CLEARED, "claim_id = null,"),),
        caught_by=(f"{HELD}[{way}]",),
    )


BUGS = (
    counted_after("jobs/move_jobs", "moved", "retried"),
    counted_after("jobs/return_jobs", "returned", "returned"),
    counted_after("jobs/expire_jobs", "expired", "expired"),
    counted_after("claims/disown_jobs", "disowned", "disowned"),
    Bug(
        name="claimed_and_not_counted",
        breaks="a job that runs does not count towards its limit, and may be claimed a second time",
        promise=Promise.LIMITS,
        edits=(Edit(CLAIM, ", held_group = j.limit_group", ""),),
        caught_by=(f"{HELD}[finished]",),
    ),
    Bug(
        name="limited_claim_not_noted",
        breaks="limited jobs are held under a claim that has no row, so that they are never requeued",
        promise=Promise.BACK,
        edits=(Edit(CLAIM, "having count(*) > 0", "having false"),),
        caught_by=(f"{CLAIMS}::test_what_a_claim_writes",),
    ),
    Bug(
        name="limits_not_locked",
        breaks="two claimers that count at the same time both find room",
        promise=Promise.LIMITS,
        edits=(Edit(LOCK, "\n       for no key update skip locked)\n", ")\n"),),
        caught_by=(f"{MANY}::test_claims_settlements_crashes_and_changes_from_all_sides",),
    ),
    Bug(
        name="limits_waited_for",
        breaks="all workers wait for one that claims under a limit",
        promise=Promise.LIMITS,
        edits=(Edit(LOCK, "for no key update skip locked)", "for no key update)"),),
        caught_by=(f"{CLAIMS}::test_no_claim_waits_for_the_lock_of_a_limit",),
    ),
    Bug(
        name="limited_claim_not_durable",
        breaks="a crash of the server forgets a claim that counts while its job still runs",
        promise=Promise.LIMITS,
        edits=(
            Edit(
                LOCK,
                "nullif(current_setting('tenure_link.synchronous_commit', true), '')",
                "'off'",
            ),
        ),
        caught_by=(f"{WORKERS}::test_a_claim_under_a_limit_is_durable_and_an_ordinary_one_need_not_be",),
    ),
    Bug(
        name="room_given_away_twice",
        breaks="the room that a limit has left is given to each of its keys",
        promise=Promise.LIMITS,
        edits=(Edit(CLAIM, "where (w.kind_room is null or w.of_kind <= w.kind_room) and ", "where "),),
        caught_by=(f"{CLAIMS}::test_in_all_and_of_each_key",),
    ),
    Bug(
        name="room_of_several_sets_not_shared_out",
        breaks="each of several kinds uses the whole room of their queue",
        promise=Promise.LIMITS,
        edits=(
            Edit(
                CLAIM,
                "when grouping(o.queue_no) = 0 then count(*) > min(o.queue_room)",
                "when grouping(o.queue_no) = 0 then false",
            ),
        ),
        caught_by=(f"{CLAIMS}::test_sets_of_jobs_that_share_one_room_do_not_each_use_all_of_it[queue]",),
    ),
    Bug(
        name="locks_of_an_earlier_claim_believed",
        breaks="a worker claims under limits that it had locked for an earlier claim",
        promise=Promise.LIMITS,
        edits=(Edit(LOCK, "from locked l), E'\\n'), true)", "from locked l), E'\\n'), false)"),),
        caught_by=("tests/limits/test_one_round_trip.py::test_a_claim_without_a_lock_takes_nothing",),
    ),
    Bug(
        name="other_limits_overlooked",
        breaks="a job under two limits is claimed by a worker that has locked only one of them",
        promise=Promise.LIMITS,
        edits=(Edit(CLAIM, "     where u.fits and u.locked),", "     where u.fits),"),),
        caught_by=(f"{CLAIMS}::test_jobs_under_a_limit_that_is_not_locked_stay_where_they_are",),
    ),
    Bug(
        name="old_limit_groups_count",
        breaks="jobs whose limit group was assigned under another key are claimed under that key",
        promise=Promise.LIMITS,
        edits=(Edit(CLAIM, "     where u.fits and u.locked),", "     where u.locked),"),),
        caught_by=(f"{CHANGES}::test_groups_of_another_key_are_assigned_again_and_not_claimed_before",),
    ),
    Bug(
        name="window_over_too_early",
        breaks="starts that are kept together count only from when the first of them was",
        promise=Promise.LIMITS,
        edits=(
            Edit(
                CLAIM, "date_bin(p.part, k.now, 'epoch') + p.part end as ended", "date_bin(p.part, k.now, 'epoch') end as ended"
            ),
        ),
        caught_by=(f"{RATES}::test_many_starts_are_kept_together_and_count_until_the_last_of_them_is_over",),
    ),
    Bug(
        name="starts_forgotten_early",
        breaks="starts are removed while a window still reaches back to them",
        promise=Promise.LIMITS,
        edits=(Edit(CLAIM, "b.ended + make_interval(secs => n.seconds), sum(c.jobs)", "b.ended, sum(c.jobs)"),),
        caught_by=(f"{RATES}::test_permits_become_free_one_by_one_as_they_were_used",),
    ),
    Bug(
        name="priority_before_turns",
        breaks="a tenant with urgent jobs keeps all others waiting forever",
        promise=Promise.LIMITS,
        edits=(
            Edit(
                CLAIM,
                "case when c.fair then max(c.priority) over (partition by",
                "case when c.fair then c.priority when false then max(c.priority) over (partition by",
            ),
        ),
        caught_by=(f"{TURNS}::test_turns_come_before_priorities_where_the_limit_is_fair",),
    ),
    Bug(
        name="turns_forgotten",
        breaks="every claim begins at the first limit group, and those behind it are never served",
        promise=Promise.LIMITS,
        edits=(Edit("worker/claim/limited_claimer.py", "        self._after |= reply.cursors or {}\n", ""),),
        caught_by=(f"{WORKERS}::test_one_tenant_does_not_keep_others_waiting",),
    ),
    Bug(
        name="queue_without_a_limit_group",
        breaks="jobs of a limited queue are enqueued without its limit",
        promise=Promise.LIMITS,
        edits=(
            Edit(LIMIT_GROUP_OF, "where r.name in ('kind:' || kind, 'queue:' || queue)", "where r.name in ('kind:' || kind)"),
        ),
        caught_by=("tests/limits/test_limit_groups.py::test_kind_and_queue_limit_a_job_together",),
    ),
    Bug(
        name="older_limits_obeyed",
        breaks="a worker continues to use the limits that it read first",
        promise=Promise.LIMITS,
        edits=(
            Edit(
                "store/sql/jobs/claim_jobs.sql",
                "       and :limits::bigint = (select c.version from tenure.limit_changes c where c.id)\n",
                "       and :limits::bigint >= 0\n",
            ),
        ),
        caught_by=(f"{CLAIMS}::test_a_worker_that_knows_older_limits_claims_nothing",),
    ),
    Bug(
        name="strays_slip_past",
        breaks="jobs that were inserted without a limit group are claimed like those without a limit",
        promise=Promise.LIMITS,
        edits=(
            Edit(
                "worker/claim/claimer.py",
                "array_literal([kind for kind in self._kinds.served if kind not in self._known_limits.closed_kinds])",
                "array_literal(list(self._kinds.served))",
            ),
        ),
        caught_by=(f"{WORKERS}::test_jobs_inserted_without_the_function_do_not_slip_past_the_limit",),
    ),
    Bug(
        name="freed_below_the_cursors",
        breaks="jobs whose limit was removed are below the cursors, where no worker searches",
        promise=Promise.LIMITS,
        edits=(
            Edit(
                "store/sql/limits/regroup_jobs.sql",
                "from regrouped r where r.limit_group is null\n",
                "from regrouped r where false\n",
            ),
        ),
        caught_by=(f"{CHANGES}::test_when_a_limit_is_removed_its_jobs_are_free_and_all_workers_search_again",),
    ),
    Bug(
        name="runs_not_adopted",
        breaks="what runs when a limit is set does not count under it",
        promise=Promise.LIMITS,
        edits=(
            Edit(
                "store/sql/limits/adopt_held.sql",
                "and (j.limit_group is distinct from h.limit_group or j.held_group is distinct from h.limit_group)",
                "and j.limit_group <> h.limit_group",
            ),
        ),
        caught_by=(f"{CHANGES}::test_what_runs_already_counts_under_a_new_limit",),
    ),
    Bug(
        name="limits_that_went_forgotten",
        breaks="a job whose transaction commits after its limit was removed is never claimed",
        promise=Promise.LIMITS,
        edits=(
            Edit(
                "worker/claim/known_limits.py",
                "self._outdated_groups |= found.outdated or (changed and found.waiting)",
                "self._outdated_groups |= changed and found.waiting",
            ),
        ),
        caught_by=(f"{WORKERS}::test_a_job_that_waits_under_a_limit_that_does_not_exist_is_found_and_runs",),
    ),
    Bug(
        name="limits_that_went_looked_for_in_one_place",
        breaks="jobs that wait under a limit that is gone are not seen beside those of a limit that holds",
        promise=Promise.LIMITS,
        edits=(
            Edit(
                "store/sql/limits/learn_limits.sql",
                "    union all\n    select s.queue, coalesce((select max(l.beyond",
                "    union all\n    select s.queue, 'zzz' || coalesce((select max(l.beyond",
            ),
        ),
        caught_by=(f"{CHANGES}::test_jobs_that_wait_under_a_limit_that_is_gone_are_noticed_beside_those_of_others",),
    ),
)
