"""Bugs in workflows: what is recorded, who is woken, what is undone."""

from __future__ import annotations

from tests.planted.bug import Bug, Edit, Promise

RECORD, SUSPEND = "store/sql/steps/record_steps.sql", "store/sql/workflows/suspend_jobs.sql"
WAKE, NUMBER = "store/sql/events/wake_waiting.sql", "store/sql/events/number_events.sql"
RUNNER, JOURNAL, EXECUTION = "flow/step_runner.py", "flow/journal.py", "flow/execution.py"
ORDERS = "tests/workflows/test_orders.py"
STEPS, SLEEP, EVENTS = "tests/workflows/test_steps.py", "tests/workflows/test_sleep.py", "tests/workflows/test_events.py"
ROLLBACK = "tests/workflows/test_rollback.py"
WAKING = "tests/workflows/test_waking.py"
DECISIONS = "tests/workflows/test_decisions.py"
TRANSACTIONS = "tests/workflows/test_step_transactions.py"

LOST = "tests/workflows/test_lost_steps.py::test_a_run_that_lost_steps_begins_again_with_what_is_recorded"

BUGS = (
    Bug(
        name="steps_after_lost_ones",
        breaks="a run records steps after a failover that has lost the ones before",
        promise=Promise.STALE,
        edits=(
            Edit(RECORD, "     where h.whole\n", ""),
            Edit(RECORD, "h.claim_id::text as claim_id, h.whole from", "h.claim_id::text as claim_id, true as whole from"),
        ),
        caught_by=(f"{LOST}[step]",),
    ),
    Bug(
        name="waits_after_lost_steps",
        breaks="a workflow waits for what follows from steps that a failover has lost",
        promise=Promise.STALE,
        edits=(
            Edit(
                SUSPEND, "s.name = v.name limit 1) is null) as whole) w", "s.name = v.name limit 1) is null) or true as whole) w"
            ),
        ),
        caught_by=(f"{LOST}[sleep]",),
    ),
    Bug(
        name="circle_without_rollback",
        breaks="a workflow that waits for itself ends without undoing what it has done",
        promise=Promise.CHAINS,
        edits=(
            Edit(
                "store/sql/blockers/end_blocked.sql",
                "coalesce(j.system ? 'undo' and not j.system ? 'canceling', false) as undoes",
                "false as undoes",
            ),
        ),
        caught_by=(f"{ROLLBACK}::test_a_workflow_that_waits_for_its_own_child_in_a_circle_is_rolled_back",),
    ),
    Bug(
        name="steps_share_a_key",
        breaks="a replay returns the result of another step whose name looks like this one",
        promise=Promise.ONCE,
        edits=(Edit("flow/branches.py", " and not _LIKE_A_USE.search(name) else", " else"),),
        caught_by=("tests/workflows/test_step_names.py",),
    ),
    Bug(
        name="checkpoint_without_a_lock",
        breaks="a run that has just lost its job records a step that its successor has not seen",
        promise=Promise.STALE,
        edits=(Edit(RECORD, "         limit 1 for share skip locked) j),", "         limit 1) j),"),),
        caught_by=(f"{WAKING}::test_a_job_is_not_taken_away_while_a_step_of_it_is_being_stored",),
    ),
    Bug(
        name="checkpoint_by_id",
        breaks="a run whose job is held by another run records a step",
        promise=Promise.STALE,
        edits=(Edit(RECORD, "where j.id = g.id and j.claim_id = g.claim_id", "where j.id = g.id"),),
        caught_by=(f"{ORDERS}::test_a_run_that_lost_its_job_records_nothing_that_its_successor_did_not_see[20]",),
    ),
    Bug(
        name="step_returns_before_it_is_stored",
        breaks="a workflow continues with a result that a crash loses",
        promise=Promise.DURABLE,
        edits=(Edit("worker/run/steps.py", "        self._begin()\n        await request.answer\n", "        self._begin()\n"),),
        caught_by=(f"{STEPS}::test_a_workflow_returns_what_its_steps_made", f"{SLEEP}"),
    ),
    Bug(
        name="step_acts_before_its_reasons_are_stored",
        breaks="a step acts because of a timeout, a failure or a time that a crash loses, and the next run decides differently",
        promise=Promise.DURABLE,
        edits=(Edit(RUNNER, "            await self.journal.store_decisions(key)\n", ""),),
        caught_by=(f"{DECISIONS}::test_an_event_that_comes_after_the_step_for_its_absence_has_acted_changes_nothing",),
    ),
    Bug(
        name="reasons_that_another_task_stores",
        breaks="a step acts because of a decision that the statement of another task has not stored yet",
        promise=Promise.DURABLE,
        edits=(
            Edit(
                JOURNAL,
                "                await asyncio.wait([next(reversed(self._storing))])\n",
                "                return\n",
            ),
        ),
        caught_by=(f"{DECISIONS}::test_a_step_waits_for_a_decision_that_another_task_is_storing",),
    ),
    Bug(
        name="failure_is_forgotten_after_its_fallback",
        breaks="a step is tried again although its fallback has acted",
        promise=Promise.RECORD,
        edits=(Edit(JOURNAL, "        return key not in self._failed or any(", "        return any("),),
        caught_by=(f"{DECISIONS}::test_a_step_that_failed_stays_failed_once_its_fallback_has_acted",),
    ),
    Bug(
        name="waits_are_checked_at_birth",
        breaks="an event that was sent before a workflow began to wait does not wake it",
        promise=Promise.TIME,
        edits=(
            Edit(
                SUSPEND,
                "insert into tenure.waits as w (job_id, step, event, key, after, fence)",
                "insert into tenure.waits as w (job_id, step, event, key, after, fence, checked)",
            ),
            Edit(
                SUSPEND,
                "select m.id, g.step, g.event, g.key, g.after, m.fence\n",
                "select m.id, g.step, g.event, g.key, g.after, m.fence, true\n",
            ),
        ),
        caught_by=(f"{ORDERS}::test_an_event_and_a_wait_find_each_other[20]",),
    ),
    Bug(
        name="signal_for_two_tasks",
        breaks="two tasks of a workflow receive the same signal",
        promise=Promise.ONCE,
        edits=(Edit("flow/waiting.py", "        if position <= self.position:\n            return False\n", ""),),
        caught_by=(f"{EVENTS}::test_tasks_that_wait_for_the_same_signal_get_one_each",),
    ),
    Bug(
        name="signal_to_a_run_that_is_over",
        breaks="a signal that was sent before a workflow began again is never received",
        promise=Promise.DURABLE,
        edits=(
            Edit(
                "store/sql/events/signal_job.sql",
                "    select :name::text, g.chain_id::text, :payload::jsonb,",
                "    select :name::text,"
                " coalesce((select j.id from tenure.jobs j where j.chain_id = g.chain_id limit 1), g.chain_id)::text,"
                " :payload::jsonb,",
            ),
        ),
        caught_by=("tests/workflows/test_continuing.py::test_signals_follow_a_workflow_that_begins_again_each_once",),
    ),
    Bug(
        name="signals_are_received_again",
        breaks="a workflow that begins again receives the signals of its earlier runs again",
        promise=Promise.ONCE,
        edits=(Edit(EXECUTION, "self._context._with_signals(result) if isinstance(result, Continue) else result", "result"),),
        caught_by=("tests/workflows/test_continuing.py::test_signals_that_a_run_has_not_received_are_for_the_next_one",),
    ),
    Bug(
        name="events_wake_no_checked_wait",
        breaks="an event that is sent after the resolver has looked at a wait does not wake its workflow",
        promise=Promise.TIME,
        edits=(Edit(NUMBER, "       set checked = false\n", "       set checked = true\n"),),
        caught_by=(f"{EVENTS}::test_a_workflow_waits_for_an_event_and_gets_its_payload",),
    ),
    Bug(
        name="wait_without_a_fence",
        breaks="the resolver marks a wait as checked that was written again meanwhile",
        promise=Promise.TIME,
        edits=(
            Edit(WAKE, "and w.step = u.step and w.fence = u.fence and not w.checked", "and w.step = u.step"),
            Edit(
                WAKE,
                "where j.id = u.job_id and j.state = 'waiting' and j.fence = u.fence limit 1) is null)",
                "where j.id = u.job_id and j.state = 'waiting' limit 1) is null or u.answered)",
            ),
        ),
        caught_by=(f"{WAKING}::test_a_wait_that_is_written_again_while_the_resolver_looks_at_it_is_looked_at_again",),
    ),
    Bug(
        name="locked_wait_is_checked",
        breaks="a workflow whose row is locked when its event comes is never woken",
        promise=Promise.TIME,
        edits=(
            Edit(
                WAKE,
                "and (not u.answered or u.job_id in (select k.id from woken k)",
                "and (true or u.job_id in (select k.id from woken k)",
            ),
        ),
        caught_by=(f"{WAKING}::test_a_workflow_whose_row_is_locked_is_woken_later",),
    ),
    Bug(
        name="suspension_spends_an_attempt",
        breaks="a workflow that sleeps three times is a dead letter",
        promise=Promise.TIME,
        edits=(Edit(SUSPEND, "attempt = greatest(j.attempt - 1, 0)", "attempt = j.attempt"),),
        caught_by=(f"{SLEEP}::test_a_sleeping_workflow_takes_no_slot_and_continues_where_it_was",),
    ),
    Bug(
        name="changed_code_runs_on",
        breaks="a run whose code was changed executes the new steps instead of being held",
        promise=Promise.RECORD,
        edits=(Edit(JOURNAL, "                    return False\n", "                    return True\n"),),
        caught_by=(f"{SLEEP}::test_a_changed_workflow_is_held_before_it_does_anything_new",),
    ),
    Bug(
        name="handled_failures_are_forgotten",
        breaks="a step that failed and was handled succeeds in the next run, and the workflow takes another path",
        promise=Promise.RECORD,
        edits=(
            Edit(
                RUNNER,
                "        for failure in failures:\n            self.journal.add(",
                "        for failure in failures[:0]:\n            self.journal.add(",
            ),
        ),
        caught_by=(f"{STEPS}::test_a_failure_that_the_workflow_handles_is_the_same_in_every_run",),
    ),
    Bug(
        name="unhandled_failures_are_kept",
        breaks="the next attempt of a workflow repeats the failure of the last one without trying",
        promise=Promise.TIME,
        edits=(Edit(EXECUTION, "                await self._journal.forget_failures(_failed_steps(error))\n", ""),),
        caught_by=(f"{STEPS}::test_a_failure_among_other_tasks_is_tried_again_by_the_next_attempt",),
    ),
    Bug(
        name="rollback_is_not_recorded",
        breaks="a rollback that is interrupted turns back into the workflow",
        promise=Promise.RECORD,
        edits=(
            Edit(
                EXECUTION,
                '        await self._journal.record(MARK, "rollback", ending.to_json())\n        return ending\n',
                "        return ending\n",
            ),
        ),
        caught_by=(f"{ROLLBACK}::test_a_rollback_waits_for_the_next_try_of_an_undo_and_does_not_go_back_to_the_workflow",),
    ),
    Bug(
        name="cancel_undoes_nothing",
        breaks="a canceled workflow does not undo its steps",
        promise=Promise.CONTROL,
        edits=(
            Edit(
                "store/sql/jobs/cancel_jobs.sql",
                "coalesce(j.system ? 'undo', false) and not :force::boolean as undoes",
                "false and not :force::boolean as undoes",
            ),
        ),
        caught_by=(f"{ROLLBACK}::test_a_canceled_workflow_runs_once_more_to_undo_what_it_has_done",),
    ),
    Bug(
        name="second_cancel_drops_undos",
        breaks="a workflow that is canceled twice does not undo the remaining steps",
        promise=Promise.CONTROL,
        edits=(
            Edit(
                "store/sql/jobs/cancel_jobs.sql",
                "coalesce(j.system ? 'undo', false) and not :force::boolean as undoes",
                "coalesce(j.system ? 'undo' and not j.system ? 'canceling', false) and not :force::boolean as undoes",
            ),
            Edit(
                "store/sql/jobs/cancel_jobs.sql",
                "           and (:force::boolean or not coalesce(j.system ? 'canceling', false))\n",
                "",
            ),
        ),
        caught_by=(f"{ROLLBACK}::test_a_second_cancellation_drops_no_undo",),
    ),
    Bug(
        name="retried_workflow_is_canceled",
        breaks="a canceled workflow that is retried is rolled back at once instead of beginning again",
        promise=Promise.CONTROL,
        edits=(
            Edit(
                "store/sql/jobs/retry_finished.sql", "'{held,undo,canceling,forked,link,signals,blockers}'", "'{link,blockers}'"
            ),
        ),
        caught_by=(f"{ROLLBACK}::test_a_canceled_workflow_that_is_retried_begins_again",),
    ),
    Bug(
        name="wrong_code_is_recorded",
        breaks="a run that was held stays held after the code is back",
        promise=Promise.CONTROL,
        edits=(Edit(EXECUTION, "            return Suspend(how)  # not what", "            pass  # not what"),),
        caught_by=("tests/workflows/test_versions.py::test_what_the_wrong_code_added_does_not_hold_the_right_code",),
    ),
    Bug(
        name="undone_in_the_order_of_doing",
        breaks="the first step is undone first",
        promise=Promise.CONTROL,
        edits=(Edit("flow/rollback.py", "in reversed(undos):", "in undos:"),),
        caught_by=(f"{ROLLBACK}::test_all_is_undone_in_reverse_order_after_the_last_attempt",),
    ),
    Bug(
        name="rollback_stops_at_the_first_task",
        breaks="what other tasks of a canceled workflow have registered is not undone",
        promise=Promise.CONTROL,
        edits=(
            Edit(
                RUNNER,
                "            await self.journal.caught_up()  # other tasks may not have reached",
                "            # other tasks may",
            ),
        ),
        caught_by=(f"{ROLLBACK}::test_what_parallel_tasks_have_registered_is_undone_also_if_another_task_has_not_begun",),
    ),
    Bug(
        name="results_in_the_order_of_python",
        breaks="a workflow goes through the result of a step in another order after a crash",
        promise=Promise.RECORD,
        edits=(Edit("flow/step_functions.py", "self.codec.decode(as_stored(text))", "self.codec.decode(text)"),),
        caught_by=(f"{STEPS}::test_the_first_run_gets_a_result_in_the_form_in_which_later_runs_get_it",),
    ),
    Bug(
        name="transaction_step_twice",
        breaks="a step in a transaction whose COMMIT was not answered writes a second time",
        promise=Promise.TOGETHER,
        edits=(
            Edit(
                "store/sql/steps/record_in_transaction.sql",
                " where s.state = 'retry'\nreturning name",
                "returning name",
            ),
        ),
        caught_by=(f"{TRANSACTIONS}::test_a_step_that_is_stored_already_writes_nothing_again",),
    ),
    Bug(
        name="child_without_its_step",
        breaks="a workflow that crashes after it has started a child starts it again",
        promise=Promise.ONCE,
        edits=(
            Edit(
                "store/sql/workflows/start_children.sql",
                "as step) s\n    on conflict",
                "as step) s where false\n    on conflict",
            ),
        ),
        caught_by=(f"{WAKING}::test_a_child_and_the_step_that_names_it_are_stored_together",),
    ),
    Bug(
        name="child_that_ended_early_is_missed",
        breaks="a child that ends while its workflow begins to wait for it again never wakes it",
        promise=Promise.TIME,
        edits=(Edit(SUSPEND, "do update set armed = false, met = false),", "do nothing),"),),
        caught_by=(f"{WAKING}::test_a_child_that_ended_while_its_workflow_ran_wakes_it_when_it_waits_again",),
    ),
    Bug(
        name="suspended_while_a_step_runs",
        breaks="a task that sleeps ends the steps of the others",
        promise=Promise.ONCE,
        edits=(
            Edit(
                "flow/activity.py",
                "        if changes != self._changes or self._working or not self._waits:",
                "        if changes != self._changes or not self._waits:",
            ),
            Edit("flow/activity.py", "        if self._waits and not self._working:", "        if self._waits:"),
        ),
        caught_by=(f"{SLEEP}::test_one_task_sleeps_while_the_others_work_and_the_workflow_wakes_for_the_first",),
    ),
)
