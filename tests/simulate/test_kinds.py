"""Every kind on a real worker, twice with the same input: it ends as expected, both times in the same way."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest

from tenure.simulate.catalogue import JOBS
from tenure.simulate.expectations import check
from tenure.simulate.kinds_enqueuing import TABLE
from tests.simulate.inputs import ALL_KINDS, ONLY_UNDER_A_SUPERVISOR, input_of
from tests.simulate.running import found, run_all

pytestmark = pytest.mark.slow

IN_THIS_PROCESS = [kind for kind in ALL_KINDS if kind != ONLY_UNDER_A_SUPERVISOR]
PATIENCE = 150.0

# Beside kinds that block the event loop for a second or more, its heartbeats would come too late.
BY_THEMSELVES = ("needs_heartbeat",)
Ask = Callable[..., list[tuple[Any, ...]]]


@pytest.fixture(scope="module")
def jobs(catalogue_dsn: str) -> dict[str, list[SimpleNamespace]]:
    """All kinds, many at once, on one worker. A job that has not ended in time is returned as it is, and fails its test."""
    others = [kind for kind in IN_THIS_PROCESS if kind not in BY_THEMSELVES]
    for kinds in (BY_THEMSELVES, others):
        calls = [JOBS[kind].call(**input_of(kind)) for kind in kinds for _ in range(2)]
        with suppress(AssertionError):
            asyncio.run(run_all(catalogue_dsn, calls, within=PATIENCE))
    by_kind = defaultdict(list)
    for job in found(catalogue_dsn):
        by_kind[job.kind].append(job)
    return by_kind


@pytest.fixture(scope="module")
def ask(catalogue_dsn: str, jobs: object) -> Ask:
    def run(statement: str, *values: Any) -> list[tuple[Any, ...]]:
        with psycopg.connect(catalogue_dsn, autocommit=True) as connection:
            return connection.execute(statement, values or None).fetchall()

    return run


def test_every_kind_ends_as_expected(jobs):
    assert set(jobs) == set(IN_THIS_PROCESS)
    assert [str(surprise) for surprise in check([job for of_kind in jobs.values() for job in of_kind])] == []


def test_the_same_input_ends_the_same_way(jobs):
    def end(job: SimpleNamespace) -> tuple[Any, ...]:
        return job.state, job.attempt, job.crashes, job.output, (job.error or "").strip().rpartition("\n")[2]

    ends = {kind: [end(job) for job in jobs[kind] if job.parent_id is None] for kind in IN_THIS_PROCESS}
    assert {kind: len(alike) for kind, alike in ends.items()} == {kind: 1 if kind == "keyed" else 2 for kind in ends}
    assert {kind: alike for kind, alike in ends.items() if alike[0] != alike[-1]} == {}


def test_a_key_is_one_job(jobs):
    assert [job.key for job in jobs["keyed"]] == ["order 1"]


def test_what_is_written_with_a_job_is_written_once(jobs, ask):
    for kind in ("atomic_write", "atomic_in_thread"):
        for job in jobs[kind]:
            assert ask(f"select attempt, seed from {TABLE} where job_id = %s", job.id) == [(2, 7)]


def test_progress_is_there_to_the_last_step(jobs, ask):
    for kind in ("progress_steps", "progress_in_thread", "progress_in_process"):
        for job in jobs[kind]:
            assert ask("select percent, message from tenure.progress where job_id = %s", job.id) == [(100.0, "step 10 of 10")]


def test_log_lines_are_there_to_the_last_line(jobs, ask):
    for job in jobs["logs_lines"]:
        assert ask("select max(last_line) - min(first_line) + 1 from tenure.logs where job_id = %s", job.id) == [(21,)]


def test_rungs_have_the_priority_they_were_given(jobs):
    given = {(job.input["priority"], job.priority) for job in jobs["rung"] if job.parent_id is not None}
    assert given == {("critical", 100), ("high", 75), ("normal", 50), ("low", 25), ("background", 0)}


def test_a_chain_has_all_its_links(jobs):
    assert sorted(job.input.get("links", 3) for job in jobs["chained"]) == [1, 1, 2, 2, 3, 3]
