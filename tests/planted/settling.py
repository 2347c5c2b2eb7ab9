"""Bugs in how outcomes are written."""

from __future__ import annotations

from tests.planted.bug import Bug, Edit, Promise

FINISH, MOVE = "store/sql/jobs/finish_jobs.sql", "store/sql/jobs/move_jobs.sql"
NAMED_CLAIM = "(:outcomes::jsonb -> j.id::text ->> 0)::uuid"
"""In the statement that finishes jobs: the claim that the worker names."""
SETTLEMENT = "worker/run/settlement.py"
STORE = "tests/store/test_settling.py"
SETTLER = "tests/worker/test_settler.py"
GROUPS = "tests/store/test_groups.py::test_the_refused_item_alone_is_refused_and_each_of_the_others_is_sent_once"
LOST_ANSWERS = "tests/outages/test_lost_answers.py"

BUGS = (
    Bug(
        name="settle_by_id",
        breaks="a run whose job is held by another run completes it",
        promise=Promise.STALE,
        edits=(Edit(FINISH, f"and h.id = j.claim_id and j.claim_id = {NAMED_CLAIM}", "and j.claim_id is not null"),),
        caught_by=(f"{STORE}::test_the_same_worker_cannot_settle_by_an_older_claim_of_its_own",),
    ),
    Bug(
        name="settle_looks_then_acts",
        breaks="a job that is taken over between the look and the delete is completed by its old holder",
        promise=Promise.STALE,
        edits=(
            Edit(FINISH, "where j.ctid = any (array(", "where j.id = any (array("),
            Edit(
                FINISH,
                "select x.ctid as tid from tenure.jobs x where x.id = i.id limit 1",
                "select x.id as tid from tenure.jobs x where x.id = i.id"
                " and x.claim_id = (:outcomes::jsonb -> i.id::text ->> 0)::uuid limit 1",
            ),
            Edit(FINISH, f"and h.id = j.claim_id and j.claim_id = {NAMED_CLAIM}", f"and h.id = {NAMED_CLAIM}"),
        ),
        caught_by=(f"{STORE}::test_a_run_whose_job_is_taken_over_while_it_settles_changes_nothing",),
    ),
    Bug(
        name="attempt_as_fence",
        breaks="a crash refunds the attempt, so the next holder has the same number as the stale one",
        promise=Promise.STALE,
        edits=(
            Edit(
                FINISH,
                f"and h.id = j.claim_id and j.claim_id = {NAMED_CLAIM}",
                "and j.claim_id is not null and j.attempt = coalesce((:outcomes::jsonb -> j.id::text ->> 4)::integer, j.attempt)",
            ),
            Edit(SETTLEMENT, """["{run.claim_id}"]'""", """["{run.claim_id}",null,null,null,{run.attempt}]'"""),
            Edit(
                SETTLEMENT,
                """["{run.claim_id}",{self.output}]'""",
                """["{run.claim_id}",{self.output},null,null,{run.attempt}]'""",
            ),
        ),
        caught_by=("tests/worker/test_aborts.py::test_the_outcome_of_a_stale_run_is_refused",),
    ),
    Bug(
        name="claim_named_by_its_worker",
        breaks="a run that lost its job is taken for the next one, if that is held by the same worker",
        promise=Promise.STALE,
        edits=(
            Edit(
                "worker/claim/claimer.py",
                "        claim_id = str(uuid4())\n        self.ids.add",
                "        claim_id = self.__dict__.setdefault('one', str(uuid4()))\n        self.ids.add",
            ),
            Edit(
                "store/sql/jobs/claim_jobs.sql",
                "    having count(*) > 0),",
                "    having count(*) > 0 on conflict (id) do update set job_ids = excluded.job_ids),",
            ),
        ),
        caught_by=(
            "tests/client/test_children.py::test_a_run_whose_job_was_requeued_and_claimed_by_its_own_worker_cannot_enqueue",
        ),
    ),
    Bug(
        name="retry_by_id",
        breaks="a run whose job is held by another run moves it to retry",
        promise=Promise.STALE,
        edits=(
            Edit(MOVE, "where j.id = o.id and j.claim_id = o.claim_id limit 1", "where j.id = o.id limit 1"),
            Edit(MOVE, "where j.ctid = f.tid and j.claim_id = f.claim_id", "where j.ctid = f.tid"),
        ),
        caught_by=(f"{STORE}::test_a_run_whose_job_is_held_by_another_settles_nothing",),
    ),
    Bug(
        name="retry_with_the_position_of_a_pending_job",
        breaks="a job that waits for its retry has the position of a pending one, and cannot be written",
        promise=Promise.TIME,
        edits=(Edit(MOVE, "else 0 end,\n           run_at", "else j.position end,\n           run_at"),),
        caught_by=(f"{STORE}::test_the_holder_settles_its_run[retry]",),
    ),
    Bug(
        name="dead_letter_without_its_position",
        breaks="a job that failed for good cannot be written as a dead letter",
        promise=Promise.RECORD,
        edits=(Edit(MOVE, "when f.state = 'dead_letter' then -1", "when f.state = 'dead_letter' then j.position"),),
        caught_by=(f"{STORE}::test_the_holder_settles_its_run[dead_letter]",),
    ),
    Bug(
        name="notes_by_id",
        breaks="a stale run continues to write progress, log lines and heartbeats",
        promise=Promise.STALE,
        edits=(
            Edit(
                "store/sql/jobs/write_updates.sql",
                "where j.id = o.id and j.claim_id = o.claim_id\n",
                "where j.id = o.id and j.claim_id is not null\n",
            ),
        ),
        caught_by=("tests/worker/test_updates.py::test_the_notes_of_a_stale_run_are_refused",),
    ),
    Bug(
        name="completed_by_anyone",
        breaks="after a lost answer, a job that another run has finished is counted as a success of this run",
        promise=Promise.ONCE,
        edits=(Edit("store/sql/jobs/find_settled.sql", "h.id = o.id and h.claim_id = o.claim_id", "h.id = o.id"),),
        caught_by=(f"{STORE}::test_what_was_settled_by_this_very_claim_is_found_again",),
    ),
    Bug(
        name="null_is_not_other",
        breaks="a run whose job was canceled or deleted is never aborted",
        promise=Promise.CONTROL,
        edits=(Edit("store/sql/claims/check_claims.sql", "j.claim_id is distinct from o.claim_id", "j.claim_id <> o.claim_id"),),
        caught_by=(f"{STORE}::test_runs_that_are_no_longer_ours_are_reported_with_the_reason",),
    ),
    Bug(
        name="history_without_output",
        breaks="the result of a job is lost on its way to history",
        promise=Promise.RECORD,
        edits=(Edit(FINISH, "nullif(output, 'null')", "null::jsonb"),),
        caught_by=(f"{STORE}::test_output_error_and_input_are_in_history",),
        shows_at_once=True,
    ),
    Bug(
        name="outcomes_dropped_in_an_outage",
        breaks="what was being sent when the connection broke is forgotten",
        promise=Promise.OUTAGE,
        edits=(
            Edit(
                "worker/run/settler.py",
                "        if not self._in_flight:\n            self._in_flight, later =",
                "        if self._waiting:\n            self._in_flight, later =",
            ),
        ),
        caught_by=("tests/outages/test_worker_outages.py::test_connections_cut_again_and_again_cost_nothing_but_time",),
    ),
    Bug(
        name="settled_before_it_is_written",
        breaks="an outcome counts as safe when it is sent, not when PostgreSQL has answered",
        promise=Promise.OUTAGE,
        edits=(
            Edit(
                "worker/run/settler.py",
                "            self._unsure = True\n            raise\n",
                "            self._unsure = True\n            self._in_flight = []\n            raise\n",
            ),
        ),
        caught_by=("tests/outages/test_worker_outages.py::test_a_restart_of_the_server_costs_nothing_but_time",),
    ),
    Bug(
        name="own_success_taken_for_lost",
        breaks="a completion whose answer was lost is reported as refused",
        promise=Promise.OUTAGE,
        edits=(Edit("worker/run/settler.py", "            self._unsure = True\n            raise\n", "            raise\n"),),
        caught_by=(f"{LOST_ANSWERS}::test_an_outcome_whose_answer_was_lost_is_recorded_once",),
    ),
    Bug(
        name="one_refusal_for_all",
        breaks="one outcome that PostgreSQL refuses makes all the others of its group fail",
        promise=Promise.ONCE,
        edits=(
            Edit(
                "store/groups.py",
                "        if len(group) == 1:\n"
                "            await refused(group[0], error.refusal if isinstance(error, FailedInside) else error)\n",
                "        if group:\n"
                "            for item in group:\n"
                "                await refused(item, error)  # type: ignore[arg-type]\n",
            ),
        ),
        caught_by=(GROUPS,),
    ),
    Bug(
        name="locked_rows_waited_for",
        breaks="a transaction that keeps one job's row locked holds up all outcomes of a process",
        promise=Promise.OUTAGE,
        edits=(Edit("worker/engine.py", "within=within, lock_timeout=LOCK_TIMEOUT)", "within=within)"),),
        caught_by=(f"{SETTLER}::test_a_row_that_a_transaction_has_locked_holds_up_no_other_outcome",),
    ),
    Bug(
        name="trigger_taken_for_an_outage",
        breaks="a trigger that loses a connection of its own stops all outcomes of a process",
        promise=Promise.OUTAGE,
        edits=(
            Edit("store/faults.py", "    if reason and _is_raised_inside(error, schema):", "    if reason and schema is None:"),
        ),
        caught_by=(f"{SETTLER}::test_a_trigger_that_fails_like_an_outage_holds_up_no_other_outcome",),
    ),
    Bug(
        name="unwritten_outcomes_not_counted",
        breaks="a worker runs job after job whose outcomes are not accepted",
        promise=Promise.ONCE,
        edits=(Edit("worker/run/settler.py", "return self.backlog + len(self._parked)", "return self.backlog"),),
        caught_by=(f"{SETTLER}::test_outcomes_that_cannot_be_written_stop_further_claims_and_are_reported_at_the_stop",),
    ),
    Bug(
        name="halving_loses_one",
        breaks="of a group with one refused item, another one is never sent",
        promise=Promise.DURABLE,
        edits=(
            Edit(
                "store/groups.py",
                "send_or_halve(group[middle:], send, refused)",
                "send_or_halve(group[middle + 1 :], send, refused)",
            ),
        ),
        caught_by=(GROUPS,),
    ),
    Bug(
        name="last_words_after_the_outcome",
        breaks="the progress and log lines that a run writes just before its end are refused, because it is settled already",
        promise=Promise.RECORD,
        edits=(
            Edit(
                "worker/run/settler.py",
                "        await self._before([s.run for s in self._in_flight if s.run.updates is not None])\n",
                "",
            ),
        ),
        caught_by=("tests/worker/test_updates.py::test_the_latest_progress_always_arrives_and_costs_few_statements",),
    ),
)
