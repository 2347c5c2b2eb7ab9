"""Bugs in how chains continue and how jobs wait for them."""

from __future__ import annotations

from tests.planted.bug import Bug, Edit, Promise

CONTINUE = "store/sql/chains/continue_jobs.sql"
ARM, RESOLVE = "store/sql/blockers/arm_blockers.sql", "store/sql/blockers/resolve_endings.sql"
UNBLOCK, END = "store/sql/blockers/unblock_jobs.sql", "store/sql/blockers/end_blocked.sql"
CONTINUING, BLOCKERS = "tests/chains/test_continue.py", "tests/chains/test_blockers.py"
STALE_SNAPSHOTS = "tests/chains/test_stale_snapshots.py"

BUGS = (
    Bug(
        name="continue_by_id",
        breaks="a run that lost its job adds a link, so that the chain has two tails",
        promise=Promise.CHAINS,
        edits=(
            Edit(
                CONTINUE,
                "and h.id = j.claim_id and j.claim_id = (:outcomes::jsonb -> j.id::text ->> 0)::uuid",
                "and j.claim_id is not distinct from j.claim_id",
            ),
        ),
        caught_by=(
            f"{CONTINUING}::test_a_run_whose_job_another_claim_holds_continues_nothing_though_its_own_claim_still_holds_others",
        ),
    ),
    Bug(
        name="continue_forgets_dependants",
        breaks="jobs that wait for a chain are not unblocked when a later link ends it",
        promise=Promise.CHAINS,
        edits=(Edit(CONTINUE, "'dependants', s.dependants,", "'dependants', null::boolean,"),),
        caught_by=(f"{CONTINUING}::test_many_chains_continue_in_one_statement_and_their_flags_go_along",),
    ),
    Bug(
        name="first_link_ends_the_chain",
        breaks="a job that waits for a chain runs when the first link has completed",
        promise=Promise.CHAINS,
        edits=(
            Edit(
                CONTINUE,
                "null::uuid as chain, null::text as ending",
                "case when s.dependants then coalesce(s.chain_id, s.id) end as chain, 'completed' as ending",
            ),
        ),
        caught_by=(f"{BLOCKERS}::test_the_whole_chain_counts_not_its_first_link",),
    ),
    Bug(
        name="armed_without_the_flag",
        breaks="a blocker counts as armed although another session had locked the link, and the end is missed",
        promise=Promise.CHAINS,
        edits=(
            Edit(
                ARM, "union all select l.chain_id from live l where l.dependants\n", "union all select l.chain_id from live l\n"
            ),
        ),
        caught_by=(f"{BLOCKERS}::test_a_row_that_another_session_has_locked_is_looked_at_again",),
    ),
    Bug(
        name="arming_overwrites_the_end",
        breaks="a chain that ended while it was armed counts as ended in another way",
        promise=Promise.CHAINS,
        edits=(
            Edit(
                ARM,
                "on conflict (chain_id) do update set resolved = false",
                "on conflict (chain_id) do update set resolved = false, state = 'deleted'",
            ),
        ),
        caught_by=(f"{BLOCKERS}::test_a_blocker_that_has_already_ended_unblocks_at_once",),
    ),
    Bug(
        name="ended_before_it_was_armed",
        breaks="a chain that had ended when a job was blocked on it is never found",
        promise=Promise.CHAINS,
        edits=(
            Edit(
                ARM,
                "     where c.id not in (select l.chain_id from live l)\n",
                "     where h.id is null and c.id not in (select l.chain_id from live l)\n",
            ),
        ),
        caught_by=(f"{BLOCKERS}::test_a_blocker_that_has_already_ended_unblocks_at_once",),
    ),
    Bug(
        name="locked_pending_jobs_are_not_announced",
        breaks="a claim that skipped a job while its flag was set never looks there again",
        promise=Promise.ORDER,
        edits=(Edit(ARM, "from locked k where k.state = 'pending'", "from locked k where k.state = 'waiting'"),),
        caught_by=(f"{BLOCKERS}::test_a_pending_job_that_was_locked_is_looked_for_again_by_the_workers",),
    ),
    Bug(
        name="one_per_ending",
        breaks="a job that waits for several chains that end together waits forever",
        promise=Promise.CHAINS,
        edits=(Edit(RESOLVE, "greatest(d.missing - t.chains, 0)", "greatest(d.missing - 1, 0)"),),
        caught_by=(f"{BLOCKERS}::test_a_large_fan_in_costs_each_ending_once",),
    ),
    Bug(
        name="failure_counts_as_success",
        breaks="a job runs although a chain that it waits for has failed",
        promise=Promise.CHAINS,
        edits=(Edit(RESOLVE, "filter (where m.state <> 'completed'))[1]", "filter (where m.state = 'canceled'))[1]"),),
        caught_by=(f"{BLOCKERS}::test_what_happens_when_a_blocker_does_not_complete",),
    ),
    Bug(
        name="replayed_dead_letters_cancel",
        breaks="a dead letter that was replayed cancels jobs that were enqueued afterwards",
        promise=Promise.CHAINS,
        edits=(Edit(RESOLVE, "where not e.replayed and not :peek::boolean", "where not :peek::boolean"),),
        caught_by=(f"{BLOCKERS}::test_a_dead_letter_that_was_replayed_is_not_an_end",),
    ),
    Bug(
        name="resolved_too_early",
        breaks="of many jobs that wait for one chain only the first batch is unblocked",
        promise=Promise.CHAINS,
        edits=(Edit(RESOLVE, "and b.ctid not in (select p.tid from pairs p))", "and false)"),),
        caught_by=(f"{BLOCKERS}::test_one_ending_unblocks_many_in_batches",),
    ),
    Bug(
        name="output_is_lost_with_its_history",
        breaks="a job that waits for a chain whose history was dropped removes that chain's output for all other jobs",
        promise=Promise.CHAINS,
        edits=(Edit(RESOLVE, "case when h.id is null then e.output else h.output end as output", "h.output"),),
        caught_by=(f"{BLOCKERS}::test_the_output_of_a_blocker_outlives_its_history_when_another_job_waits_for_it",),
    ),
    Bug(
        name="newer_ending_is_counted",
        breaks="a job runs before the output of the chain that it waited for is stored",
        promise=Promise.CHAINS,
        edits=(
            Edit(RESOLVE, "       and (select x.chain_id from tenure.chain_endings x where x.ctid = e.tid) is not null\n", ""),
        ),
        caught_by=(f"{STALE_SNAPSHOTS}::test_an_ending_that_is_written_again_is_counted_with_its_output",),
    ),
    Bug(
        name="late_output_is_not_waited_for",
        breaks="a job sees no output of a blocker that adds it after its own commit",
        promise=Promise.CHAINS,
        edits=(
            Edit(
                RESOLVE,
                "and not (e.state = 'completed' and h.output is null",
                "and not (e.state = 'deleted' and h.output is null",
            ),
        ),
        caught_by=(f"{BLOCKERS}::test_an_output_that_is_still_to_come_is_waited_for",),
    ),
    Bug(
        name="unblock_without_a_term",
        breaks="a resolver that was deposed continues to move jobs",
        promise=Promise.LEADERS,
        edits=(
            Edit(
                UNBLOCK,
                "(d.failed is null or d.on_failure = 'run') and exists (select from leader)",
                "(d.failed is null or d.on_failure = 'run')",
            ),
        ),
        caught_by=("tests/leader/test_terms.py",),
    ),
    Bug(
        name="circles_wait_for_ever",
        breaks="a link that waits for its own chain waits forever instead of failing",
        promise=Promise.CHAINS,
        edits=(Edit(ARM, "((f.job_id, f.chain_id) in", "((f.job_id, f.job_id) in"),),
        caught_by=(f"{BLOCKERS}::test_a_link_that_waits_for_its_own_chain_fails_with_an_explanation",),
    ),
    Bug(
        name="completed_by_hand_for_the_run",
        breaks="a run whose chain was completed by a person is taken for the one that completed it",
        promise=Promise.STALE,
        edits=(
            Edit(
                "store/sql/chains/complete_links.sql",
                "insert into tenure.history (id, worker_id,",
                "insert into tenure.history (id, claim_id, worker_id,",
            ),
            Edit("store/sql/chains/complete_links.sql", "    select id, r.worker_id,", "    select id, claim_id, r.worker_id,"),
        ),
        caught_by=("tests/chains/test_chains_api.py::test_a_completion_is_not_taken_for_that_of_the_run",),
    ),
)
