"""`tenure simulate`: the same seed gives the same jobs, and every difference from what was expected is reported."""

from __future__ import annotations

import json
import signal
from dataclasses import fields
from itertools import islice
from uuid import UUID, uuid4

import pytest

from tenure import JobStatus, State
from tenure.cli.simulate_run import GROUPS, Simulation
from tenure.cli.simulate_verdict import MAX_SURPRISES, check_jobs, report_lines, with_descendants
from tenure.embedded.home import MARKER, Home
from tenure.simulate import expectations
from tenure.simulate.catalogue import JOBS, app
from tenure.simulate.mix import MIXES
from tests.cli.started import started


def quick(seed=7, **changes):
    """A job of the simplest kind that ended as expected, except for the changes."""
    nothing = dict.fromkeys(field.name for field in fields(JobStatus))
    right = {"id": uuid4(), "kind": "quick", "input": {"seed": seed}, "state": State.COMPLETED, "attempt": 1, "crashes": 0}
    return JobStatus(**nothing | right | {"output": seed} | changes)


def sent(*jobs):
    return {job.id: job.kind for job in jobs}


# The verdict


def test_jobs_that_ended_as_expected_are_not_surprises():
    jobs = [quick(seed, crashes=seed % 2) for seed in range(10)]
    verdict = check_jobs(sent(*jobs), 12, jobs)
    assert verdict.good
    assert (verdict.sent, verdict.jobs, verdict.unfinished, verdict.crashes) == (12, 10, 0, 5)
    assert "All jobs ended as expected: 10 jobs from 12 calls" in "\n".join(report_lines(verdict, "again"))


def test_a_job_that_is_lost_is_a_surprise():
    here, gone = quick(), quick()
    verdict = check_jobs(sent(here, gone), 2, [here])
    assert [str(surprise) for surprise in verdict.surprises] == [f"quick {gone.id} is lost"]


def test_a_falsified_expectation_is_reported_at_most_twenty_times(monkeypatch):
    monkeypatch.setitem(expectations._RULES, "quick", lambda seed: expectations.Expectation(state=State.FAILED))
    jobs = [quick(seed) for seed in range(30)]
    verdict = check_jobs(sent(*jobs), 30, jobs)
    assert not verdict.good
    lines = list(report_lines(verdict, "tenure simulate --seed 3"))
    assert sum("is completed, expected failed" in line for line in lines) == MAX_SURPRISES
    assert "  and 10 more" in lines
    assert lines[-1] == "Repeat it with: tenure simulate --seed 3"
    document = verdict.to_json()
    assert (document["ok"], document["surprises"], len(document["first_surprises"])) == (False, 30, MAX_SURPRISES)
    assert document["first_surprises"][0].keys() == {"job_id", "kind", "problem"}


def test_what_is_not_over_counts_against_it_unless_it_was_interrupted():
    jobs = [quick(), quick(state=State.RUNNING, output=None)]
    assert not check_jobs(sent(*jobs), 2, jobs).good
    interrupted = check_jobs(sent(*jobs), 2, jobs, interrupted=True)
    assert interrupted.good
    assert interrupted.unfinished == 1
    assert "All jobs that ended did so as expected; 1 had not ended" in "\n".join(report_lines(interrupted, "again"))


def test_the_jobs_of_others_are_not_ours_but_those_our_jobs_enqueued_are():
    first = quick(kind="chained", input={"seed": 1, "links": 3}, output=3)
    second = quick(kind="chained", input={"seed": 1, "links": 2}, output=2, parent_id=first.id)
    third = quick(kind="chained", input={"seed": 1, "links": 1}, output=1, parent_id=second.id)
    stranger = quick(state=State.FAILED)
    strange_child = quick(parent_id=stranger.id, state=State.FAILED)
    found = [strange_child, third, first, stranger, second]
    assert {job.id for job in with_descendants({first.id}, found)} == {first.id, second.id, third.id}
    assert check_jobs(sent(first), 1, found).good


# Sending


@pytest.mark.parametrize(
    ("order", "enqueued", "elapsed", "due"),
    [
        ((50, 500, None), 0, 0.0, 1),
        ((50, 500, None), 1, 0.5, 25),
        ((50, 500, None), 500, 20.0, None),
        ((50, 500, None), 499, 20.0, 1),
        ((50, None, 10), 499, 9.999, 1),
        ((50, None, 10), 300, 10.0, None),
        ((50, 500, None), 100, 1.0, 0),
        ((0, 500, None), 400, 1.0, 100),
        ((0, None, 10), 400, 1.0, 200),
        ((5000, None, 10), 0, 1.0, 200),
    ],
)
def test_jobs_are_sent_at_their_rate(order, enqueued, elapsed, due):
    rate, count, seconds = order
    given = dict.fromkeys(("display", "client", "calls", "check"))
    simulation = Simulation(**given, rate=rate, count=count, seconds=seconds, enqueued=enqueued)
    assert simulation._due(elapsed) == due


def test_every_kind_has_a_row():
    assert GROUPS.keys() == JOBS.keys()
    assert set(GROUPS.values()) == {"working", "reporting", "enqueuing", "failing", "unresponsive"}


# As a process


def test_the_catalogue_is_listed(line):
    answer = line("simulate", "--list")
    assert answer.exit_code == 0
    assert "quick\n    Returns its seed at once. Ends: completed.\n" in answer.stdout
    assert all(f"{kind}\n" in answer.stdout for kind in JOBS)


def test_jobs_and_seconds_are_not_given_together(line):
    answer = line("simulate", "--jobs", "3", "--seconds", "3")
    assert answer.exit_code == 2
    assert "either --jobs or --seconds" in answer.stderr


@pytest.mark.slow
def test_the_same_seed_gives_the_same_jobs_and_a_document_for_programs(dsn, sql, tmp_path):
    with started(
        tmp_path, "simulate", "--mix", "calm", "--seed", "3", "--jobs", "40", "--rate", "0", "--json", TENURE_DSN=dsn
    ) as ran:
        assert ran.ends() == 0, ran.said
    document = json.loads(ran.raw)
    assert document["seconds"] > 0
    del document["seconds"]
    assert document == {
        "mix": "calm",
        "seed": 3,
        "command": "tenure simulate --mix calm --seed 3 --jobs 40 --rate 0",
        "ok": True,
        "sent": 40,
        "jobs": 40,
        "states": {"completed": 40},
        "unfinished": 0,
        "crashes": 0,
        "surprises": 0,
        "first_surprises": [],
    }
    rows = sql("select kind, input from tenure.all_jobs order by id")
    assert rows == [(planned.kind, dict(planned.input)) for planned in islice(MIXES["calm"].plan(3), 40)]
    # The directory of its log is marked as ours: a server may use it later.
    assert (tmp_path / ".tenure" / "simulate-worker.log").stat().st_size
    assert (tmp_path / ".tenure" / MARKER).exists()
    Home(tmp_path / ".tenure").make()


@pytest.mark.slow
def test_a_mixed_simulation_on_a_terminal_ends_as_expected(bare_dsn, tmp_path):
    """It creates the schema as well."""
    words = ("simulate", "--dsn", bare_dsn, "--seed", "11", "--jobs", "60", "--rate", "60", "-p", "1")
    with started(tmp_path, *words, columns=100) as ran:
        assert ran.ends() == 0, ran.said
    for words in ("seed 11", "enqueuing", "sent 60 of 60", "All jobs ended as expected: ", "--mix mixed --seed 11 --jobs 60"):
        assert words in ran.said


@pytest.mark.slow
def test_ctrl_c_ends_the_sending_and_what_is_over_is_checked(dsn, sql, tmp_path):
    words = ("simulate", "--dsn", dsn, "--mix", "calm", "--seconds", "300", "--rate", "30", "-p", "1")
    with started(tmp_path, *words) as ran:
        assert ran.says("done: "), ran.said
        ran.signal(signal.SIGINT)
        assert ran.ends(within=30) == 0, ran.said
    assert "no more jobs are enqueued" in ran.said
    assert "as expected" in ran.said
    assert sql("select count(*) from tenure.workers") == [(0,)]


@pytest.mark.slow
def test_workers_that_do_not_start_are_reported_with_the_end_of_their_log(dsn, tmp_path):
    (tmp_path / "tenure.toml").write_text("[workers]\nlease_timeout_seconds = 3\n")
    with started(tmp_path, "simulate", "--jobs", "1", TENURE_DSN=dsn, TENURE_LOG="nonsense") as ran:
        assert ran.ends() == 1, ran.said
    assert "the workers exited (exit code 3)" in ran.said
    assert "TENURE_LOG" in ran.said


@pytest.mark.slow
def test_surprises_end_with_exit_code_1(line, monkeypatch, tmp_path):
    """The workers are right; the expectation is wrong."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(app, "given", {**app.given})  # the command sets its database, for this test only
    monkeypatch.setitem(expectations._RULES, "quick", lambda seed: expectations.Expectation(state=State.FAILED))
    answer = line("simulate", "--mix", "calm", "--jobs", "10", "--rate", "0", "--seed", "1", "-p", "1", "--json")
    app.configure()
    assert answer.exit_code == 1
    document = json.loads(answer.stdout)
    assert document["ok"] is False
    assert {surprise["kind"] for surprise in document["first_surprises"]} == {"quick"}
    assert all(UUID(surprise["job_id"]) for surprise in document["first_surprises"])
