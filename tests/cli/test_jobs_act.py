"""tenure jobs cancel, retry, replay, delete."""

from __future__ import annotations

import socket

import pytest

from tests.client.stock import lay_out
from tests.store.forged_jobs import change_state

UNKNOWN = "01890000-0000-7000-8000-000000000000"


@pytest.fixture
def ids_in(sql):
    return lambda state: [str(job_id) for (job_id,) in sql("select id from tenure.all_jobs where state = %s order by id", state)]


def test_cancel_ends_jobs_and_keeps_who_and_why(line, sql, enqueue_job):
    first, second = enqueue_job(), enqueue_job()
    assert line("jobs", "cancel", first, second[:30], "--reason", "typed by mistake").stdout == "canceled 2 jobs\n"
    [(error,)] = sql("select error from tenure.history where id = %s", first)
    assert error.endswith(f"@{socket.gethostname()}: typed by mistake")
    assert line("jobs", "cancel", first).stdout == "canceled 0 jobs; 1 was finished or rolling back already\n"
    assert line.json("jobs", "cancel", second) == {"canceled": 0}


def test_an_unknown_id_among_others_does_nothing_at_all(line, states, enqueue_job):
    job_id = enqueue_job()
    for verb in ("cancel", "retry", "replay", "delete"):
        assert line("jobs", verb, job_id, UNKNOWN).exit_code == 8
    assert states() == {"pending": 1}


def test_cancel_all_asks_and_shows_how_many(line, states, enqueue_job):
    for n in range(3):
        enqueue_job(n)
    asked = line("jobs", "cancel", "--all", "--kind", "work", typed="n\n")
    assert asked.exit_code == 1
    assert "cancel 3 jobs?" in asked.stderr
    assert "nothing was changed" in asked.stderr
    unanswered = line("jobs", "cancel", "--all", "--kind", "work")
    assert unanswered.exit_code == 2
    assert "no terminal to confirm; pass --yes" in unanswered.stderr
    assert states() == {"pending": 3}
    assert line("jobs", "cancel", "--all", "--input", '{"n": 1}', typed="y\n").stdout == "canceled 1 job\n"
    assert line.json("jobs", "cancel", "--all", "--kind", "work", "--yes") == {"canceled": 2}
    assert states() == {"canceled": 3}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "give ids, or --all"),
        (["--all"], "needs a filter: --state, --kind"),
        (["--all", "--yes"], "needs a filter"),
        (["--kind", "work"], "give ids, or --all"),
        ([UNKNOWN, "--all", "--kind", "work"], "not both"),
        ([UNKNOWN, "--since", "1h"], "--since goes with --all"),
        (["--all", "--state", "completed"], "cannot be canceled"),
    ],
)
def test_everything_is_never_canceled_by_mistake(line, states, enqueue_job, words, told):
    enqueue_job()
    refused = line("jobs", "cancel", *words)
    assert refused.exit_code == 2
    assert told in refused.stderr
    assert states() == {"pending": 1}


def test_retry_brings_a_job_forward_or_makes_a_new_one(line, states, enqueue_job):
    later, over = enqueue_job(delay="1h"), enqueue_job()
    line("jobs", "cancel", over)
    assert line("jobs", "retry", later).stdout == f"{later} will run now\n"
    [again] = line.json("jobs", "retry", over)["jobs"]
    assert again["id"] == over
    assert again["runs_as"] != over
    assert states() == {"pending": 2, "canceled": 1}


def test_what_cannot_be_retried_is_reported_and_the_others_are(line, sql, database, ids_in):
    lay_out(database, 40)
    running, scheduled = ids_in("running")[0], ids_in("scheduled")[0]
    tried = line("jobs", "retry", running, scheduled)
    assert tried.exit_code == 1
    assert f"{scheduled} will run now" in tried.stdout
    assert f"tenure: job {running} is running: cancel it first" in tried.stderr


def test_replay_runs_dead_letters_with_other_input_and_priority(line, sql, database, ids_in):
    lay_out(database, 200)
    dead = ids_in("dead_letter")
    assert line("jobs", "replay", dead[0], "--input", '{"n": -1}', "--priority", "critical").stdout == "replayed 1 job\n"
    assert sql("select state, input, priority from tenure.jobs where id = %s", dead[0]) == [("pending", {"n": -1}, 100)]
    kind = sql("select kind from tenure.jobs where id = %s", dead[1])[0][0]
    asked = line("jobs", "replay", "--all", "--kind", kind, typed="y\n")
    assert asked.exit_code == 0
    assert "replay " in asked.stderr
    assert sql("select count(*) from tenure.jobs where state = 'dead_letter' and kind = %s", kind) == [(0,)]
    assert 0 < len(ids_in("dead_letter")) < len(dead) - 1


def test_only_dead_letters_are_replayed(line, database, ids_in):
    lay_out(database, 200)
    [finished, *_], [dead, *_] = ids_in("completed"), ids_in("dead_letter")
    refused = line("jobs", "replay", finished)
    assert refused.exit_code == 1
    assert "`tenure jobs retry`" in refused.stderr
    assert line("jobs", "replay", dead, finished).stdout == "replayed 1 job; 1 was in another state\n"


def test_other_input_is_checked_where_the_app_is_known(line, shop, sql):
    job_id = line.json("enqueue", "burn", '{"why": "it is dry"}', "--app", shop)["id"]
    change_state(sql, "dead_letter")
    refused = line("jobs", "replay", job_id, "--input", '{"wy": 1}', "--app", shop)
    assert refused.exit_code == 2
    assert "arguments do not fit job 'burn'" in refused.stderr
    assert sql("select state from tenure.jobs") == [("dead_letter",)]
    assert line("jobs", "replay", job_id, "--input", "-", "--app", shop, typed='{"why": "x"}').exit_code == 0
    assert sql("select state, input from tenure.jobs") == [("pending", {"why": "x"})]


def test_delete_leaves_running_jobs_unless_forced(line, database, ids_in):
    lay_out(database, 40)
    [running, *_], [done, *_] = ids_in("running"), ids_in("completed")
    assert line("jobs", "delete", done).stdout == "deleted 1 job\n"
    assert line("jobs", "show", done).exit_code == 8
    refused = line("jobs", "delete", running)
    assert refused.exit_code == 1
    assert "delete with --force" in refused.stderr
    assert line.json("jobs", "delete", running, "--force") == {"deleted": 1}


def test_by_is_the_actor_that_is_named(line, sql, enqueue_job):
    line("jobs", "cancel", enqueue_job(), "--by", "the night shift")
    assert sql("select error from tenure.history") == [("canceled by the night shift",)]
