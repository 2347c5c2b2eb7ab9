"""What needs attention, from the state of a fleet."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

import tenure.web
from tenure.client.overview import LeaderStatus, WorkerStatus
from tenure.leader.duties.registry import DUTIES
from tenure.model.findings import Finding
from tenure.web.attention import EFFECTS, findings
from tenure.web.fleet_stats import FleetCounts, QueueCounts

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


def queue(**given: Any) -> QueueCounts:
    base = {
        "name": "mail",
        "paused_at": None,
        "paused_by": None,
        "pause_reason": None,
        "pending": 0,
        "running": 0,
        "scheduled": 0,
    }
    rest = {
        "retry": 0,
        "blocked": 0,
        "waiting": 0,
        "dead_letter": 0,
        "capped": [],
        "oldest_pending_at": None,
        "oldest_pending_seconds": None,
        "oldest_running_seconds": None,
        "today": {},
    }
    return QueueCounts(**{**base, **rest, **given})


def worker(**given: Any) -> WorkerStatus:
    base = {"id": uuid4(), "supervisor_id": uuid4(), "host": "a", "pid": 1, "queues": ["mail"], "kinds": [], "capabilities": []}
    times = {"started_at": NOW, "heartbeat_at": NOW, "expires_at": NOW, "died_at": None, "died_how": None}
    return WorkerStatus(
        **{**base, **times, "concurrency": 4, "version": "1", "alive": True, "held": 4, "name": "mail-1", **given}
    )


def leader(**given: Any) -> LeaderStatus:
    times = {"acquired_at": NOW, "heartbeat_at": NOW, "expires_at": NOW + timedelta(seconds=10)}
    base = {"duty": "cleaner", "holder": uuid4(), "term": 1, "metadata": {}, "holds": True, "stuck": False}
    return LeaderStatus(**{**base, **times, **given})


def found(*, queues: Any = (), workers: Any = (), leaders: Any = ()) -> list[tuple[str, str, str]]:
    counts = FleetCounts(at=NOW, queues=list(queues), workers=list(workers), leaders=list(leaders), today=[])
    return [(one.tone, one.title, one.text) for one in findings(counts, [])]


def test_a_healthy_fleet_needs_nothing():
    assert found(queues=[queue(pending=3, oldest_pending_seconds=2.0)], workers=[worker()], leaders=[leader()]) == []


@pytest.mark.parametrize(("age", "tone"), [(90.0, "warn"), (1200.0, "bad")])
def test_a_late_queue_names_its_workers(age, tone):
    late = queue(pending=12, oldest_pending_seconds=age, oldest_pending_at=NOW - timedelta(seconds=age))
    [(severity, title, text)] = found(queues=[late], workers=[worker()])
    assert (severity, title) == (tone, "mail cannot keep up")
    assert "12 jobs pending" in text
    assert "1 worker serves it, 4 of 4 slots are busy" in text


def test_a_late_queue_without_a_worker_is_worse():
    late = queue(name="reports", pending=1, oldest_pending_seconds=70.0, oldest_pending_at=NOW)
    assert [title for _, title, _ in found(queues=[late], workers=[worker()])] == ["No worker serves reports"]


def test_a_lost_worker_is_reported_for_an_hour_and_a_stopped_one_never():
    def lost(ago, **given):
        return worker(alive=False, expires_at=NOW - timedelta(minutes=ago), **given)

    assert [title for _, title, _ in found(workers=[worker(), lost(5)])] == ["Worker mail-1 is lost"]
    assert found(workers=[worker(), lost(90)]) == []
    assert found(workers=[worker(), lost(5, died_how="stopped")]) == []


def test_a_stuck_duty_says_what_it_means():
    [(tone, title, text)] = found(leaders=[leader(stuck=True)])
    assert (tone, title, text) == ("bad", "Leader duty cleaner is stuck", "Finished jobs are not removed.")


def test_a_duty_without_a_holder_counts_after_half_a_minute():
    def free(seconds):
        return leader(holds=False, expires_at=NOW - timedelta(seconds=seconds))

    assert found(leaders=[free(5)]) == []
    assert [title for _, title, _ in found(leaders=[free(60)])] == ["Leader duty cleaner has no leader"]
    assert found(leaders=[leader(duty="lease:mine", holds=False, expires_at=NOW - timedelta(days=1))]) == []


def test_what_the_doctor_found_is_reported_with_its_way_out():
    made = [Finding("old_transaction", "a: one; two", "end it; see: the log"), Finding("dead_letters", "told elsewhere", "x")]
    assert found(leaders=[leader(duty="doctor", findings=made)]) == [("warn", "a: one; two", "End it; see: the log")]
    assert found(leaders=[leader(duty="cleaner", findings=made)]) == []


def test_the_worst_comes_first():
    told = found(queues=[queue(name="import", paused_at=NOW, pending=1)], leaders=[leader(stuck=True)], workers=[worker()])
    assert [tone for tone, _, _ in told] == ["bad", "warn"]


def test_every_duty_has_words_for_what_its_absence_means():
    page = Path(tenure.web.__file__).parent / "static" / "dashboard" / "pages" / "leaders.js"
    table = re.search(r"^const DUTIES = \{\n(.*?)^\};", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)[1]
    assert set(EFFECTS) == set(re.findall(r"^  (\w+): ", table, re.MULTILINE)) == set(DUTIES)
