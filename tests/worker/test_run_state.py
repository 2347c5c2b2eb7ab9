"""The states of a run: what the loop decides and what the handler's own transaction does may come in any order."""

from __future__ import annotations

import pytest

from tenure import Tenure
from tenure.model.claimed_job import ClaimedJob
from tenure.worker.run.run import Run

app = Tenure("postgresql://h/x")


@app.job
def work() -> None: ...


@pytest.fixture
def run() -> Run:
    job = ClaimedJob(
        "0198f3c2-6f3a-7a55-9f0e-2f6f0c5f2d11", "work", "default", 50, 1, 1, 3, 0, 1, "{}", None, None, None, None, None
    )
    return Run(app.kinds["work"], job, "claim", "worker")


def test_a_run_is_settled_once(run):
    assert run.reports
    assert run.settle()
    assert not run.settle()
    assert run.settled
    assert not run.reports


def test_a_commit_that_fails_leaves_the_run_active(run):
    run.begin_commit()
    assert run.committing
    assert not run.reports
    run.abort("timeout")
    assert run.abort_reason is None
    run.end_commit()
    assert run.reports


def test_a_commit_that_succeeds_settles_the_run(run):
    run.begin_commit()
    run.settle_itself("completed")
    run.end_commit()
    assert run.settled_itself
    assert not run.settle()


@pytest.mark.parametrize("first", ["settle", "begin_commit"])
def test_a_run_that_is_given_up_during_its_commit_stays_settled(run, first):
    for step in (first, "begin_commit" if first == "settle" else "settle"):
        getattr(run, step)()
    assert run.settled
    run.end_commit()
    assert run.settled
    assert not run.settle()
