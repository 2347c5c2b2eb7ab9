"""Bugs in what people do with jobs."""

from __future__ import annotations

from tests.planted.bug import Bug, Edit, Promise

CANCEL, DELETE, REPLAY = (f"store/sql/control/{name}_jobs.sql" for name in ("cancel", "delete", "replay"))

RETRY, RETRY_FINISHED = "store/sql/control/retry_job.sql", "store/sql/control/retry_finished.sql"

BUGS = (
    Bug(
        name="cancel_leaves_the_run_its_job",
        breaks="a running job is told to be canceled, and completes",
        promise=Promise.CONTROL,
        edits=(
            Edit(
                CANCEL,
                "    delete from tenure.jobs j\n     where j.ctid = any (array(select f.place from found f))\n    returning j.*,",
                "    select j.*,",
            ),
            Edit(
                CANCEL,
                "coalesce(:now::timestamptz, clock_timestamp()) as ended_at),\nmissed",
                "coalesce(:now::timestamptz, clock_timestamp()) as ended_at\n      from tenure.jobs j\n"
                "     where j.ctid = any (array(select f.place from found f))),\n"
                "gone as (\n    delete from tenure.jobs j using canceled c where j.id = c.id and c.claim_id is null),\nmissed",
            ),
        ),
        caught_by=(
            "tests/client/test_client_cancel.py::test_a_worker_whose_job_was_canceled_can_settle_nothing_and_is_told_why",
        ),
    ),
    Bug(
        name="canceled_by_its_own_run",
        breaks="the run of a canceled job finds its own claim in history, and takes the end for its own",
        promise=Promise.RECORD,
        edits=(
            Edit(CANCEL, "insert into tenure.history (id, worker_id,", "insert into tenure.history (id, claim_id, worker_id,"),
            Edit(
                CANCEL,
                "select c.id, c.worker_id, c.fence, c.enqueued_at",
                "select c.id, c.claim_id, c.worker_id, c.fence, c.enqueued_at",
            ),
        ),
        caught_by=(
            "tests/client/test_client_cancel.py::test_a_worker_whose_job_was_canceled_can_settle_nothing_and_is_told_why",
        ),
    ),
    Bug(
        name="delete_what_runs",
        breaks="a running job vanishes under its handler without force",
        promise=Promise.CONTROL,
        edits=(
            Edit(
                DELETE,
                "         where j.id = i.id and (:force::boolean or j.claim_id is null)\n         limit 1\n"
                "           for update skip locked) j\n     where :force::boolean or not exists (select from running)),",
                "         where j.id = i.id\n         limit 1\n           for update skip locked) j),",
            ),
        ),
        caught_by=("tests/client/test_client_delete.py::test_a_running_job_is_refused_and_then_nothing_is_deleted",),
    ),
    Bug(
        name="replay_without_attempts",
        breaks="a replayed dead letter has no attempt left",
        promise=Promise.CONTROL,
        edits=(Edit(REPLAY, "run_at = null, attempt = 0, crashes = 0,", "run_at = null, crashes = 0,"),),
        caught_by=("tests/client/test_client_replays.py::test_dead_letters_are_replayed_in_bulk_the_oldest_first",),
    ),
    Bug(
        name="replay_beside_its_key",
        breaks="a dead letter is replayed although another job has its key, and both run",
        promise=Promise.KEYS,
        edits=(Edit(REPLAY, " and (f.key is null or f.id in (select k.id from keyed k where k.stands is null))", ""),),
        caught_by=(
            "tests/client/test_keys.py::test_a_dead_letter_whose_key_another_job_has_cannot_be_replayed_while_that_one_is_live",
        ),
    ),
    Bug(
        name="retry_locks_what_it_leaves",
        breaks="a claim steps over a pending job that somebody retries, and does not come back to it for long",
        promise=Promise.CONTROL,
        edits=(
            Edit(
                RETRY,
                "where j.id = :id::uuid and j.state in ('retry', 'scheduled', 'dead_letter')\n       for no key",
                "where j.id = :id::uuid\n       for no key",
            ),
        ),
        caught_by=("tests/store/test_control_moves.py::test_a_pending_job_that_is_not_moved_is_not_locked_either",),
    ),
    Bug(
        name="retried_twice",
        breaks="two who retry a finished job at once make two of it",
        promise=Promise.CONTROL,
        edits=(Edit(RETRY_FINISHED, "            'key', 'retry of ' || o.id, 'key_for', 'live',\n", ""),),
        caught_by=(
            "tests/client/test_client_replays.py::test_of_many_who_retry_a_finished_job_at_once_all_get_the_same_new_one",
        ),
    ),
    Bug(
        name="replay_takes_the_fence_back",
        breaks="the fence of a replayed job begins anew, and stores that check it refuse the new run",
        promise=Promise.STALE,
        edits=(Edit(REPLAY, "run_at = null, attempt = 0, crashes = 0,", "run_at = null, attempt = 0, crashes = 0, fence = 0,"),),
        caught_by=("tests/client/test_client_replays.py::test_the_fence_of_a_replayed_job_goes_on",),
    ),
)
