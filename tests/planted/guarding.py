"""Bugs in who may do what over the web API."""

from __future__ import annotations

from tests.planted.bug import Bug, Edit, Promise

BUGS = (
    Bug(
        name="operators_replay_a_bulk_deletion",
        breaks="a token that may not delete jobs replays a bulk deletion, which deletes what matches by now",
        promise=Promise.ACCESS,
        edits=(
            Edit(
                "web/api/job_actions.py",
                'retry it instead")\n    _check_rerun(call, job)\n',
                'retry it instead")\n',
            ),
        ),
        caught_by=("tests/web/test_jobs.py::test_a_bulk_deletion_is_run_again_by_admins_only[replay]",),
    ),
    Bug(
        name="operators_replay_bulk_deletions_by_id",
        breaks="a token that may not delete jobs replays a bulk deletion by a bulk action that names it",
        promise=Promise.ACCESS,
        edits=(
            Edit(
                "web/api/bulk.py",
                'what.action in ("retry", "replay") and is_builtin(job.kind)',
                'what.action == "retry" and False',
            ),
        ),
        caught_by=("tests/web/test_jobs.py::test_a_bulk_deletion_is_run_again_by_admins_only[ids]",),
    ),
    Bug(
        name="built_in_jobs_belong_to_their_queue",
        breaks="a token that is limited to the queue of bulk actions sees those of others, and runs them again over all queues",
        promise=Promise.ACCESS,
        edits=(Edit("web/security/principal.py", "        if is_builtin(kind):\n            return False\n", ""),),
        caught_by=("tests/web/test_limited_tokens.py::test_bulk_actions_of_others_are_not_in_any_queue",),
    ),
    Bug(
        name="a_server_opens_when_its_last_token_ends",
        breaks="a server on loopback gives every user of the machine all rights again when its last token expires or is revoked",
        promise=Promise.ACCESS,
        edits=(
            Edit(
                "store/sql/tokens/has_tokens.sql", "where t.purpose = 'api'", "where t.purpose = 'api' and t.revoked_at is null"
            ),
        ),
        caught_by=("tests/web/test_security.py::test_s1_a_local_server_stays_closed_when_its_last_token_ends[revoked_at]",),
    ),
    Bug(
        name="connections_without_a_token_are_not_bounded",
        breaks="a stranger holds all connections of the server by WebSockets that send no token",
        promise=Promise.ACCESS,
        edits=(
            Edit(
                "web/security/pending_sockets.py",
                "if self._by_address[address] >= most or self._by_address.total() >= MOST:",
                "if self._by_address[address] > MOST:",
            ),
        ),
        caught_by=("tests/web/test_live.py::test_connections_that_wait_for_their_token_are_bounded",),
    ),
    Bug(
        name="secrets_in_errors_are_shown",
        breaks="a password that a handler writes into an exception is shown to everyone who may look",
        promise=Promise.ACCESS,
        edits=(Edit("web/security/redaction.py", "            error=known.hide(job.error),\n", ""),),
        caught_by=("tests/web/test_security.py::test_s13_secrets_in_errors_logs_and_progress_are_hidden_too",),
    ),
    Bug(
        name="workers_empty_the_audit_log",
        breaks="an account of a worker deletes the entries of the audit log about what it has just done",
        promise=Promise.ACCESS,
        edits=(Edit("store/functions/drop_audit.sql", " and a.at < clock_timestamp() - interval '30 days'", ""),),
        caught_by=("tests/store/test_cleaning.py::test_old_entries_of_the_audit_log_go_but_none_of_the_last_thirty_days",),
    ),
)
