"""Bugs in how jobs are canceled, deleted, retried and replayed."""

from __future__ import annotations

from tests.planted.bug import Bug, Edit, Promise

CANCEL, DELETE, REPLAY = (f"store/sql/jobs/{name}_jobs.sql" for name in ("cancel", "delete", "replay"))

BUGS = (
    Bug(
        name="one_bad_row_stops_a_bulk_action",
        breaks="one job that PostgreSQL refuses to change keeps cancel_all, replay_all and delete from doing anything",
        promise=Promise.CONTROL,
        edits=(
            Edit(
                "client/lock_retry.py",
                "await persist(ids, lambda batch: self._ask_around(batch, ask))",
                "await persist(ids, ask)",
            ),
        ),
        caught_by=("tests/client/test_client_refused.py::test_cancel_all_cancels_all_but_the_refused_ones_and_names_them",),
    ),
    Bug(
        name="cancel_leaves_the_run_its_job",
        breaks="a running job is canceled, and still completes",
        promise=Promise.CONTROL,
        edits=(
            Edit(
                CANCEL,
                "    delete from tenure.jobs j\n     where j.ctid = any (array(select f.tid from found f where not f.undoes))\n"
                "    returning j.*,",
                "    select j.*,",
            ),
            Edit(
                CANCEL,
                "coalesce(:now::timestamptz, clock_timestamp()) as ended_at),\nplaced",
                "coalesce(:now::timestamptz, clock_timestamp()) as ended_at\n      from tenure.jobs j\n"
                "     where j.ctid = any (array(select f.tid from found f))),\n"
                "gone as (\n    delete from tenure.jobs j using canceled c where j.id = c.id and c.claim_id is null),\n"
                "placed",
            ),
        ),
        caught_by=("tests/client/test_client_cancel.py::test_a_worker_whose_job_was_canceled_can_settle_nothing_and_learns_why",),
    ),
    Bug(
        name="canceled_by_its_own_run",
        breaks="the run of a canceled job finds its own claim in history, and takes the end for its own",
        promise=Promise.RECORD,
        edits=(
            Edit(CANCEL, "insert into tenure.history (id, worker_id", "insert into tenure.history (id, claim_id, worker_id"),
            Edit(CANCEL, "select id, r.worker_id, coalesce", "select id, claim_id, r.worker_id, coalesce"),
        ),
        caught_by=("tests/client/test_client_cancel.py::test_a_worker_whose_job_was_canceled_can_settle_nothing_and_learns_why",),
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
        name="replay_takes_the_fence_back",
        breaks="the fence of a replayed job starts from the beginning, and stores that check it refuse the new run",
        promise=Promise.STALE,
        edits=(Edit(REPLAY, "run_at = null, attempt = 0, crashes = 0,", "run_at = null, attempt = 0, crashes = 0, fence = 0,"),),
        caught_by=("tests/client/test_client_replays.py::test_the_fence_of_a_replayed_job_continues_to_grow",),
    ),
)
