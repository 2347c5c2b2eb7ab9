"""Bugs in how jobs are enqueued."""

from __future__ import annotations

from tests.planted.bug import Bug, Edit, Promise

ENQUEUE, ENQUEUE_AGAIN, TAKE_KEYS, CHECK_PARENTS = (
    f"store/functions/{name}.sql" for name in ("enqueue", "enqueue_again", "take_keys", "check_parents")
)
KEYS, RACES = "tests/client/test_keys.py", "tests/client/test_key_races.py"
DURABILITY = "tests/outages/test_durability.py"
LOST_ANSWERS = "tests/outages/test_lost_answers.py"

BUGS = (
    Bug(
        name="enqueue_not_durable",
        breaks="jobs that were accepted are gone after a crash of the server",
        promise=Promise.DURABLE,
        edits=(
            Edit(
                "client/session.py",
                'self._enqueue_link = Link(database, "enqueue")',
                'self._enqueue_link = Link(database, "enqueue", durable=False)',
            ),
        ),
        caught_by=(f"{DURABILITY}::test_jobs_that_were_accepted_are_there_after_a_crash_of_the_server",),
    ),
    Bug(
        name="completion_not_durable",
        breaks="jobs that were completed run again after a crash of the server",
        promise=Promise.ONCE,
        edits=(
            Edit(
                "worker/engine.py",
                "within=within, lock_timeout=LOCK_TIMEOUT)",
                "within=within, lock_timeout=LOCK_TIMEOUT, durable=False)",
            ),
        ),
        caught_by=(
            "tests/worker/test_durable_outcomes.py::test_outcomes_are_written_by_transactions_that_wait_for_the_disk",
            f"{DURABILITY}::test_a_job_whose_result_was_returned_is_completed_after_a_crash_of_the_server",
        ),
    ),
    Bug(
        name="repeated_with_new_ids",
        breaks="an enqueue whose answer was lost makes its jobs a second time",
        promise=Promise.DURABLE,
        edits=(
            Edit(
                "client/enqueue_batches.py",
                "jobs.enqueue(to_json(calls), again=again)",
                "jobs.enqueue(to_json(calls) if not again else to_json(calls).replace('\"id\":', '\"was\":'))",
            ),
        ),
        caught_by=(f"{LOST_ANSWERS}::test_an_enqueue_whose_commit_was_not_answered_makes_one_job",),
    ),
    Bug(
        name="repeated_as_new",
        breaks="a caller gets an error for a job that was enqueued",
        promise=Promise.DURABLE,
        edits=(Edit("client/enqueue_batches.py", "jobs.enqueue(to_json(calls), again=again)", "jobs.enqueue(to_json(calls))"),),
        caught_by=(f"{LOST_ANSWERS}::test_an_enqueue_whose_commit_was_not_answered_makes_one_job",),
    ),
    Bug(
        name="finished_meanwhile",
        breaks="an enqueue repeated after its job has finished makes the job again",
        promise=Promise.DURABLE,
        edits=(
            Edit(
                ENQUEUE_AGAIN,
                " and (select h.id from tenure.history h where h.id = (e.job ->> 'id')::uuid limit 1) is null\n",
                "\n",
            ),
            Edit(
                ENQUEUE_AGAIN,
                "         cross join lateral (select h.id from tenure.history h where h.id = g.id limit 1) h\n",
                "         cross join lateral (select g.id where false) h\n",
            ),
        ),
        caught_by=(f"{LOST_ANSWERS}::test_an_enqueue_whose_job_is_finished_before_the_answer_comes_makes_one_job",),
    ),
    Bug(
        name="key_looked_up_then_taken",
        breaks="two callers at the same time both find a key free",
        promise=Promise.KEYS,
        edits=(
            Edit("store/migrations/0001_pre_initial.sql", "    constraint keys_pkey primary key (kind, key),\n", ""),
            Edit(
                TAKE_KEYS,
                "         order by g.kind, g.key, g.ordinal\n        on conflict (kind, key) do nothing;",
                "           and not exists (select from tenure.keys o where o.kind = g.kind and o.key = g.key)\n"
                "         order by g.kind, g.key, g.ordinal;",
            ),
        ),
        caught_by=(f"{RACES}::test_a_key_taken_by_a_transaction_that_ends_late_is_waited_for",),
    ),
    Bug(
        name="key_never_freed",
        breaks="a key for live jobs is kept forever",
        promise=Promise.KEYS,
        edits=(
            Edit(
                TAKE_KEYS, "and (k.scope = 'live' or k.expires_at <= clock_timestamp())", "and k.expires_at <= clock_timestamp()"
            ),
        ),
        caught_by=(f"{KEYS}::test_a_key_for_live_jobs_is_free_when_its_job_is_finished_and_not_before",),
    ),
    Bug(
        name="key_freed_by_time_alone",
        breaks="a job that waits for longer than the window of its key is made twice",
        promise=Promise.KEYS,
        edits=(
            Edit(
                TAKE_KEYS,
                "           and not exists (select from tenure.jobs j where j.id = k.job_id and j.state <> 'dead_letter');\n",
                "           ;\n",
            ),
        ),
        caught_by=(f"{KEYS}::test_a_window_that_is_over_does_not_free_the_key_of_a_job_still_to_be_done",),
    ),
    Bug(
        name="key_forgotten_when_asked_again",
        breaks="an enqueue with a key makes a second job when it is repeated",
        promise=Promise.KEYS,
        edits=(
            Edit(
                ENQUEUE_AGAIN,
                "select coalesce(jsonb_agg(g.job order by g.ordinal), '[]') into fresh",
                "select coalesce(jsonb_agg(g.job - 'key' order by g.ordinal), '[]') into fresh",
            ),
        ),
        caught_by=(f"{RACES}::test_the_news_that_a_job_existed_is_not_lost_with_the_answer",),
    ),
    Bug(
        name="children_of_a_stale_run",
        breaks="a run that lost its job still enqueues others",
        promise=Promise.STALE,
        edits=(
            Edit(
                CHECK_PARENTS,
                "where j.id = g.parent and j.claim_id = g.claim)",
                "where j.id = g.parent and j.claim_id is not null)",
            ),
        ),
        caught_by=("tests/client/test_children.py::test_a_run_whose_job_was_taken_away_cannot_enqueue",),
    ),
    Bug(
        name="children_not_waited_for",
        breaks="a job is taken away between the look at its holder and the commit of its children",
        promise=Promise.STALE,
        edits=(Edit(ENQUEUE, "tenure.check_parents(given, not borrowed)", "tenure.check_parents(given, false)"),),
        caught_by=(
            "tests/client/test_children.py::test_a_statement_that_takes_a_job_away_waits_until_its_children_are_enqueued",
        ),
    ),
)
