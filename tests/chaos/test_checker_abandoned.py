"""I20 no claimed job is abandoned."""

from __future__ import annotations

import pytest

from tenure.chaos.invariants.runs import AFTER_REMOVAL, OF_A_DEAD_WORKER, OF_A_LIVE_WORKER
from tenure.chaos.invariants.traces import IN_PROCESS
from tenure.worker.process.pool import START_PATIENCE
from tests.chaos.builder import LedgerBuilder, Row


def claimed_job(kind: str = "quick", *, started: bool = True) -> tuple[LedgerBuilder, Row]:
    builder = LedgerBuilder()
    builder.set(concurrency=10)
    for worker in ("w1", "w2"):
        builder.worker("registered", worker)
    row = builder.enqueue(kind)
    builder.claim(row)
    if started:
        builder.start(row)
    return builder, row


def runs_other_jobs(builder: LedgerBuilder, seconds: float = 0.0) -> None:
    """The worker is alive and runs other jobs meanwhile."""
    until = builder.now + seconds
    while builder.now < until:
        builder.finish(builder.enqueue())
        builder.wait(1)
    builder.finish(builder.enqueue())


def test_a_worker_that_is_removed_while_a_job_is_held_under_it(tmp_path):
    """What `return_jobs` did to a row that changed between its snapshot and its lock."""
    builder, row = claimed_job()
    builder.worker("condemned")
    builder.worker("removed")
    builder.wait(AFTER_REMOVAL + 1)
    builder.crash(row)
    builder.finish(row, worker="w2")
    assert builder.broken(tmp_path) == ["I20"]


def test_a_worker_that_is_removed_with_its_last_job(tmp_path):
    builder, row = claimed_job()
    builder.worker("condemned")
    builder.crash(row)
    builder.worker("removed")
    builder.wait(60)
    builder.finish(row, worker="w2")
    assert builder.broken(tmp_path) == []


def test_a_job_that_its_live_worker_never_starts(tmp_path):
    """The answer to the claim was lost, or an error came between the claim and the slots."""
    builder, row = claimed_job(started=False)
    runs_other_jobs(builder, OF_A_LIVE_WORKER + 1)
    builder.requeue(row)
    builder.finish(row, worker="w2")
    assert builder.broken(tmp_path) == ["I20"]


def test_a_job_that_is_started_late_but_not_too_late(tmp_path):
    builder, row = claimed_job(started=False)
    runs_other_jobs(builder, OF_A_LIVE_WORKER - 2)
    builder.start(row)
    builder.complete(row)
    runs_other_jobs(builder)
    assert builder.broken(tmp_path) == []


@pytest.mark.parametrize(("late", "broken"), [(-2, []), (1, ["I20"])])
def test_a_job_that_runs_in_a_process_has_the_time_in_which_a_process_starts(tmp_path, late, broken):
    """On an overloaded machine a process takes longer to start than other jobs may wait."""
    builder, row = claimed_job(IN_PROCESS, started=False)
    runs_other_jobs(builder, START_PATIENCE + OF_A_LIVE_WORKER + late)
    builder.requeue(row)
    builder.finish(row, worker="w2")
    assert builder.broken(tmp_path) == broken


def test_a_worker_that_is_blocked_by_a_handler_is_waited_for_like_one_that_may_be_dead(tmp_path):
    builder, row = claimed_job(started=False)
    builder.wait(OF_A_DEAD_WORKER - 1)
    builder.start(row)
    builder.complete(row)
    runs_other_jobs(builder)
    assert builder.broken(tmp_path) == []


def test_a_run_that_ended_and_is_not_settled_while_its_worker_is_alive(tmp_path):
    """After a failover that lost the settlement, or when one refused outcome stops all others."""
    builder, row = claimed_job()
    builder.run("returned", row)
    runs_other_jobs(builder, OF_A_LIVE_WORKER + 1)
    builder.requeue(row)
    builder.finish(row, worker="w2")
    assert builder.broken(tmp_path) == ["I20"]


def test_a_run_that_never_ends_in_a_live_worker(tmp_path):
    builder, row = claimed_job()
    runs_other_jobs(builder, builder.campaign.longest + OF_A_LIVE_WORKER + 1)
    builder.requeue(row)
    builder.finish(row, worker="w2")
    assert builder.broken(tmp_path) == ["I20"]


def test_a_run_that_is_still_held_at_the_end(tmp_path):
    builder, _row = claimed_job()
    runs_other_jobs(builder, 60)
    builder.set(drained=False, ended=builder.now + 5)
    assert builder.broken(tmp_path) == ["I14", "I20"]


def test_a_dead_worker_whose_jobs_are_requeued_in_time(tmp_path):
    builder, row = claimed_job()
    builder.wait(builder.campaign.longest + OF_A_DEAD_WORKER - 1)
    builder.worker("condemned")
    builder.crash(row)
    builder.worker("removed")
    builder.finish(row, worker="w2")
    assert builder.broken(tmp_path) == []


def test_a_dead_worker_whose_jobs_are_requeued_too_late(tmp_path):
    builder, row = claimed_job()
    builder.wait(builder.campaign.longest + OF_A_DEAD_WORKER + 1)
    builder.worker("condemned")
    builder.crash(row)
    builder.worker("removed")
    builder.finish(row, worker="w2")
    assert builder.broken(tmp_path) == ["I20"]


@pytest.mark.parametrize(
    ("fault", "found"), [("server_stop", []), ("lock_core", []), ("lock_aside", ["I20"]), ("kill_child", ["I20"])]
)
def test_faults_of_the_server_are_an_excuse_and_locks_on_tables_that_no_job_needs_are_not(fault, found, tmp_path):
    builder, row = claimed_job()
    builder.run("returned", row)
    builder.fault(fault, OF_A_DEAD_WORKER + 1)
    builder.remove(row)
    builder.settle(row, "completed", output=builder.output_of(row))
    runs_other_jobs(builder)
    assert builder.broken(tmp_path) == found


def test_a_fault_is_an_excuse_for_its_time_only(tmp_path):
    builder, row = claimed_job()
    builder.run("returned", row)
    builder.fault("cut", 1.0)
    runs_other_jobs(builder, OF_A_LIVE_WORKER + 5)
    builder.remove(row)
    builder.settle(row, "completed", output=builder.output_of(row))
    runs_other_jobs(builder)
    assert builder.broken(tmp_path) == ["I20"]


@pytest.mark.parametrize(("pid", "found"), [(101, []), (102, ["I20"])])
def test_a_process_that_is_stopped_starts_nothing_meanwhile(pid, found, tmp_path):
    builder, row = claimed_job(started=False)
    builder.fault("stop_child", OF_A_DEAD_WORKER + 5, stopped=(pid,))
    runs_other_jobs(builder)
    builder.requeue(row)
    builder.finish(row, worker="w2")
    assert builder.broken(tmp_path) == found


@pytest.mark.parametrize(("kind", "found"), [("refused", []), ("quick", ["I20"])])
def test_rows_that_are_refused_wait_and_their_neighbours_do_not(kind, found, tmp_path):
    builder, _ = claimed_job()
    builder.finish(next(iter(builder.rows.values())))
    row = builder.enqueue(kind)
    builder.claim(row)
    builder.start(row)
    builder.run("returned", row)
    builder.fault("refuse_rows", 5.0)
    runs_other_jobs(builder, OF_A_LIVE_WORKER + 5)
    builder.remove(row)
    builder.settle(row, "completed", output=builder.output_of(row))
    runs_other_jobs(builder)
    assert [number for number in builder.broken(tmp_path) if number == "I20"] == found


@pytest.mark.parametrize(("steps", "found"), [(5, []), (0, ["I20"])])
def test_a_workflow_runs_as_long_as_it_records_steps(steps, found, tmp_path):
    """On a slow machine, thirty steps take longer than any other job. The one that stands still is abandoned."""
    builder, _ = claimed_job()
    builder.finish(next(iter(builder.rows.values())))
    row = builder.enqueue("workflow_sequence")
    builder.claim(row)
    builder.start(row)
    for number in range(5):
        if number < steps:
            builder.step(row, f"step {number}")
        runs_other_jobs(builder, builder.campaign.longest)
    builder.requeue(row)
    builder.finish(row, worker="w2")
    assert [number for number in builder.broken(tmp_path) if number == "I20"] == found
