"""How rows become a report, without a database."""

from __future__ import annotations

import json
from datetime import timedelta
from uuid import UUID

import pytest

from tenure.store.job_records import IncidentRecord
from tests.client.lives import START, TRACEBACK, WORKER, at, ended, report, seconds, status, timeline, twice_failed


def texts(told):
    return [moment.text for moment in told.events]


def test_a_job_that_simply_completed_is_reported_by_its_row():
    told = report(status("completed", fence=1, worker_id=WORKER, started_at=at(0.15), finished_at=at(1.15)))
    [attempt] = told.attempts
    assert (attempt.number, attempt.outcome, attempt.worker, attempt.error) == (1, "completed", "here:1", None)
    assert (seconds(attempt.waited), seconds(attempt.ran)) == (0.15, 1)
    assert timeline(told) == [(0, "enqueued"), (0.15, "started"), (1.15, "completed")]
    assert texts(told) == [
        "enqueued by shop",
        "attempt 1 started on here:1, waited 0.15 s",
        "attempt 1 completed after 1.00 s",
    ]
    assert (told.untold, told.incidents) == (0, [])
    assert [seconds(span) for span in (told.totals.waited, told.totals.ran, told.totals.lived)] == [0.15, 1, 1.15]


def test_a_job_that_never_started_only_waits():
    told = report(status(), now=7)
    assert (told.attempts, told.untold) == ([], 0)
    assert timeline(told) == [(0, "enqueued")]
    assert [seconds(span) for span in (told.totals.waited, told.totals.ran, told.totals.lived)] == [7, 0, 7]


def test_a_scheduled_job_does_not_wait_before_it_is_due():
    told = report(status("scheduled", run_at=at(60)), now=7)
    assert told.totals.waited == timedelta()
    assert timeline(told) == [(0, "enqueued"), (60, "due")]


def test_the_first_wait_counts_from_the_time_it_was_scheduled_for_when_that_is_known():
    told = report(status("running", fence=1, worker_id=WORKER, run_at=at(60), started_at=at(61)), now=70)
    assert seconds(told.attempts[0].waited) == 1


def test_a_running_attempt_ran_until_now():
    [attempt] = report(status("running", fence=1, worker_id=WORKER, started_at=at(2)), now=10).attempts
    assert (attempt.outcome, attempt.ended_at, seconds(attempt.ran)) == ("running", None, 8)


def test_failed_attempts_wait_from_the_time_they_were_due_again():
    told = twice_failed()
    assert [attempt.outcome for attempt in told.attempts] == ["failed", "timed_out", "completed"]
    assert [seconds(attempt.waited) for attempt in told.attempts] == [0.15, 1, 1]
    assert [seconds(attempt.ran) for attempt in told.attempts] == [0.85, 1, 2]
    assert [attempt.error for attempt in told.attempts] == [TRACEBACK, "TimeoutError: timed out", None]
    assert [what for _, what in timeline(told)] == [
        "enqueued",
        "started",
        "failed",
        "started",
        "timed_out",
        "started",
        "completed",
    ]
    assert texts(told)[2] == "attempt 1 failed after 0.85 s: ValueError: no such address; due again in 2.00 s"


def test_a_job_that_waits_for_its_next_attempt_says_when_it_is_due():
    told = report(status("retry", fence=1, run_at=at(9), started_at=at(1)), ended(1, 1, 2, due=9), now=4)
    assert timeline(told)[-1] == (9, "due")
    assert seconds(told.totals.waited) == 1


@pytest.mark.parametrize("what", ["failed", "timed_out", "crashed", "lease_lost"])
def test_the_attempt_that_made_a_dead_letter_is_followed_by_that(what):
    told = report(status("dead_letter", fence=1, started_at=at(1)), ended(1, 1, 2, what))
    assert timeline(told)[-2:] == [(2, what), (2, "dead_letter")]
    assert seconds(told.totals.waited) == 1  # the time as a dead letter does not count


def test_a_replayed_dead_letter_waits_from_its_replay():
    told = report(
        status("completed", fence=2, worker_id=WORKER, started_at=at(52), finished_at=at(53)),
        ended(1, 1, 2),
        IncidentRecord(at=at(50), what="replayed", by="ada"),
    )
    assert [what for _, what in timeline(told)] == [
        "enqueued",
        "started",
        "failed",
        "dead_letter",
        "replayed",
        "started",
        "completed",
    ]
    assert seconds(told.attempts[1].waited) == 2
    assert [(incident.what, incident.by) for incident in told.incidents] == [("replayed", "ada")]
    assert "replayed by ada" in texts(told)


def test_a_job_retried_by_hand_before_its_time_waits_from_then():
    told = report(
        status("running", fence=2, worker_id=WORKER, started_at=at(6)),
        ended(1, 1, 2, due=60),
        IncidentRecord(at=at(5), what="retried", by="ada", attempt=1, fence=1, worker_id=WORKER),
    )
    assert [attempt.outcome for attempt in told.attempts] == ["failed", "running"]
    assert seconds(told.attempts[1].waited) == 1


def test_snoozes_and_crashes_repeat_the_number_of_the_attempt_but_not_of_the_run():
    told = report(
        status("completed", attempt=1, fence=3, worker_id=WORKER, started_at=at(20), finished_at=at(21)),
        ended(1, 1, 2, "snoozed", due=10),
        ended(2, 10, 11, "crashed", attempt=1),
    )
    assert [(attempt.number, attempt.fence) for attempt in told.attempts] == [(1, 1), (1, 2), (1, 3)]
    assert texts(told)[-1] == "attempt 1 (run 3) completed after 1.00 s"
    assert seconds(told.attempts[2].waited) == 9  # a crashed job is ready at once


def test_canceled_before_it_ran():
    told = report(
        status("canceled", finished_at=at(8)), IncidentRecord(at=at(7.99999), what="canceled", by="ada", error="not needed")
    )
    assert told.attempts == []
    assert timeline(told) == [(0, "enqueued"), (8, "canceled")]
    assert texts(told)[-1] == "canceled by ada: not needed"
    assert seconds(told.totals.waited) == 8


def test_canceled_while_it_waited_for_its_next_attempt():
    told = report(
        status("canceled", fence=1, started_at=at(1), finished_at=at(8)),
        ended(1, 1, 2, due=60),
        IncidentRecord(at=at(8), what="canceled", by="ada", fence=1, started_at=at(1)),
    )
    assert [attempt.outcome for attempt in told.attempts] == ["failed"]
    assert timeline(told)[-1] == (8, "canceled")


def test_canceled_while_it_ran():
    by_incident = report(
        status("canceled", fence=1, worker_id=WORKER, started_at=at(1), finished_at=at(5)),
        ended(1, 1, 5.00001, "canceled", by="ada", error="too slow"),
    )
    by_row = report(
        status("canceled", fence=1, worker_id=WORKER, started_at=at(1), finished_at=at(5), error="too slow"),
        IncidentRecord(at=at(4.9), what="canceled", by="ada", error="too slow"),
    )
    for told in (by_incident, by_row):
        assert [what for _, what in timeline(told)] == ["enqueued", "started", "canceled"]
        assert texts(told)[-1] == "attempt 1 was canceled by ada after 4.00 s: too slow"
        assert [attempt.outcome for attempt in told.attempts] == ["canceled"]


def test_a_slow_cancel_is_reported_apart_from_the_end():
    told = report(
        status("canceled", fence=1, worker_id=WORKER, started_at=at(1), finished_at=at(9)),
        IncidentRecord(at=at(5), what="canceled", by="ada"),
    )
    assert timeline(told)[-2:] == [(5, "canceled"), (9, "canceled")]


def test_an_old_error_in_the_row_is_not_that_of_a_later_cancellation():
    told = report(
        status("canceled", fence=2, worker_id=WORKER, started_at=at(6), finished_at=at(7), error="boom"),
        ended(1, 1, 2, due=5, error="boom"),
    )
    assert [attempt.error for attempt in told.attempts] == ["boom", None]


def test_a_job_failed_for_good_has_its_reason():
    told = report(status("failed", fence=1, worker_id=WORKER, started_at=at(1), finished_at=at(2), error="no such address"))
    assert told.attempts[0].error == "no such address"
    assert texts(told)[-1] == "attempt 1 failed after 1.00 s: no such address"


def test_a_job_finished_without_a_worker_is_finished_all_the_same():
    told = report(status("completed", finished_at=at(3)))
    assert (told.attempts, timeline(told)[-1]) == ([], (3, "completed"))


def test_runs_of_which_nothing_is_kept_are_counted_and_nothing_is_made_up_about_them():
    told = report(status("running", attempt=4, fence=7, worker_id=WORKER, started_at=at(50)), ended(5, 40, 41, due=45))
    assert [attempt.fence for attempt in told.attempts] == [5, 7]
    assert told.untold == 5
    assert [attempt.waited for attempt in told.attempts] == [None, None]


def test_the_run_after_a_gap_waits_from_a_replay_that_is_known():
    told = report(status("running", fence=7, worker_id=WORKER, started_at=at(50)), IncidentRecord(at=at(48), what="replayed"))
    assert seconds(told.attempts[0].waited) == 2


def test_a_last_run_whose_incident_is_gone_has_no_known_end():
    told = report(status("dead_letter", attempt=3, fence=3, started_at=at(5), error="boom"))
    [attempt] = told.attempts
    assert (attempt.fence, attempt.number, attempt.outcome, attempt.ended_at, attempt.ran) == (3, None, "unknown", None, None)
    assert timeline(told) == [(0, "enqueued"), (5, "started")]
    assert told.untold == 2


def test_a_claim_of_which_its_worker_never_heard_leaves_the_job_waiting():
    told = report(status("pending", attempt=0, fence=1, started_at=at(5)))
    assert [attempt.outcome for attempt in told.attempts] == ["unknown"]


def test_a_job_due_at_once_is_not_ready_before_its_run_was_over():
    told = report(status("running", fence=2, worker_id=WORKER, started_at=at(3)), ended(1, 1, 2, due=1.9))
    assert seconds(told.attempts[1].waited) == 1


def test_missing_times_stay_missing():
    told = report(
        status("retry", fence=1, run_at=at(9)), ended(1, 0, 2, started_at=None, attempt=None, worker_id=None, worker=None)
    )
    [attempt] = told.attempts
    assert (attempt.started_at, attempt.waited, attempt.ran, attempt.number) == (None, None, None, None)
    assert texts(told)[1] == "run 1 failed"


def test_a_clock_read_in_another_order_makes_no_negative_span():
    told = report(status("completed", fence=1, worker_id=WORKER, started_at=at(-0.001), finished_at=at(-0.002)))
    assert (told.attempts[0].waited, told.attempts[0].ran, told.totals.lived) == (timedelta(), timedelta(), timedelta())


def test_incidents_of_an_unknown_name_are_shown_as_they_are():
    told = report(
        status("pending", fence=1, started_at=at(1)),
        ended(1, 1, 2, "moved_away"),
        IncidentRecord(at=at(3), what="looked_at", by="ada"),
    )
    assert texts(told)[-2:] == ["attempt 1 moved away after 1.00 s", "looked at by ada"]


def test_what_happened_at_the_same_time_is_reported_in_order():
    told = report(status("completed", fence=1, worker_id=WORKER, started_at=START, finished_at=START))
    assert [what for _, what in timeline(told)] == ["enqueued", "started", "completed"]


def test_a_child_says_whose_it_is():
    parent = UUID(int=9)
    assert texts(report(status(parent_id=parent, enqueued_by=None))) == [f"enqueued on behalf of job {parent}"]


def test_as_json_it_has_plain_values_only():
    told = twice_failed().to_json()
    assert json.loads(json.dumps(told, allow_nan=False)) == told
    assert told["job"]["state"] == "completed"
    assert told["totals"] == {"waited": 2.15, "ran": 3.85, "lived": 12.0}
    assert told["attempts"][0]["started_at"] == "2026-07-27T10:00:00.150000+00:00"
    assert told["attempts"][0]["worker_id"] == str(WORKER)
    assert told["events"][0] == {"at": START.isoformat(), "what": "enqueued", "text": "enqueued by shop"}
