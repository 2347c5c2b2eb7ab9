"""What is logged of failures that are retried: each cause once, then at most once a minute, and once when it is over."""

from __future__ import annotations

import asyncio
import logging

import pytest

from tenure import outages as module
from tenure.model.errors import StoreUnavailable
from tenure.outages import CONNECT, Failures
from tenure.periodic import FOREVER, PeriodicTask
from tenure.store.faults import ConnectionRejected, Refused
from tests.waiting import until

SERVER = "db:5432/shop"


@pytest.fixture
def clock(monkeypatch):
    class Clock:
        now = 1000.0

        def monotonic(self) -> float:
            return self.now

    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    return clock


@pytest.fixture
def failures():
    return Failures()


@pytest.fixture
def logged(caplog):
    caplog.set_level(logging.DEBUG, logger="tenure")
    return lambda level=logging.INFO: [(r.levelname, r.getMessage()) for r in caplog.records if r.levelno >= level]


def lost(text="PostgreSQL cannot be reached: connection refused"):
    return StoreUnavailable(text, server=SERVER)


def denied(statement="jobs/claim_jobs"):
    return Refused("permission denied for table jobs", "42501", statement=statement, server=SERVER)


def test_an_outage_is_one_warning_and_one_info_for_all_tasks_that_meet_it(failures, clock, logged):
    for who in ("claimer", "settler", "watch"):
        for text in ("PostgreSQL cannot be reached: closed", "PostgreSQL cannot be reached: refused"):
            failures.failed(who, lost(text))
    clock.now += 26
    failures.recovered("watch")  # it had nothing to do
    failures.succeeded("other:5432/shop", "jobs/claim_jobs")
    failures.succeeded(SERVER, CONNECT)  # accepted, and closed at once: nothing was done yet
    assert logged() == [("WARNING", "PostgreSQL cannot be reached: closed; retrying")]
    failures.succeeded(SERVER, "jobs/claim_jobs")
    failures.succeeded(SERVER, "jobs/finish_jobs")
    assert logged()[1:] == [("INFO", "PostgreSQL is back after 26.0 s")]


def test_a_refusal_is_reported_once_a_minute_with_a_count_and_is_over_when_the_statements_work(failures, clock, logged):
    for _ in range(100):
        failures.failed("claimer", denied())
        failures.failed("settler", denied("jobs/finish_jobs"))
        clock.now += 1
    failures.succeeded(SERVER, "jobs/notify")
    failures.succeeded(SERVER, "jobs/claim_jobs")
    assert logged() == [
        ("WARNING", "claimer: permission denied for table jobs; retrying"),
        ("WARNING", "claimer: permission denied for table jobs; still failing after 121 attempts in 60 s"),
    ]
    failures.succeeded(SERVER, "jobs/finish_jobs")
    assert logged()[2:] == [("INFO", "claimer: works again after 200 failed attempts in 100.0 s")]


def test_a_rejected_login_is_over_with_the_next_connection_not_with_a_statement_of_an_old_one(failures, clock, logged):
    failures.failed("claimer", ConnectionRejected("PostgreSQL rejects the login", cause="authentication", server=SERVER))
    clock.now += 5
    failures.succeeded(SERVER, "jobs/claim_jobs")
    assert len(logged()) == 1
    failures.succeeded(SERVER, CONNECT)
    assert logged()[1:] == [("INFO", "claimer: works again after 1 failed attempt in 5.0 s")]


def test_one_connection_that_comes_and_goes_does_not_fill_the_log(failures, clock, logged):
    for _ in range(50):
        failures.failed("listener", lost())
        clock.now += 0.5
        failures.succeeded(SERVER, "jobs/claim_jobs")
        clock.now += 0.5
    assert len(logged()) == 2
    clock.now += 60
    failures.failed("listener", lost())
    assert len(logged()) == 3


def test_a_connection_that_comes_and_goes_for_long_is_reported_once_a_minute(failures, clock, logged):
    for _ in range(150):
        failures.failed("listener", lost())
        clock.now += 0.5
        failures.succeeded(SERVER, "jobs/claim_jobs")
        clock.now += 0.5
    assert [level for level, _ in logged()] == ["WARNING", "INFO"] * 3


def test_a_long_outage_soon_after_a_brief_one_is_reported(failures, clock, logged):
    failures.failed("listener", lost())
    clock.now += 0.2
    failures.succeeded(SERVER, "jobs/claim_jobs")
    clock.now += 5
    for _ in range(5):
        failures.failed("claimer", lost())
        clock.now += 0.5
    failures.succeeded(SERVER, "jobs/claim_jobs")
    assert logged()[2:] == [
        ("WARNING", "PostgreSQL cannot be reached: connection refused; still failing after 3 attempts in 1 s"),
        ("INFO", "PostgreSQL is back after 2.5 s"),
    ]


def test_the_end_of_a_long_outage_is_reported_even_if_only_its_first_moment_was_noticed(failures, clock, logged):
    failures.failed("listener", lost())
    clock.now += 0.2
    failures.succeeded(SERVER, "jobs/claim_jobs")
    failures.failed("claimer", lost())
    clock.now += 20
    failures.succeeded(SERVER, "jobs/claim_jobs")
    assert logged()[2:] == [("INFO", "PostgreSQL is back after 20.0 s")]


def test_a_statement_that_waits_for_a_lock_is_reported_until_it_has_succeeded(failures, clock, logged):
    text = "jobs/claim_jobs has waited 4 s for a lock of process 7 (psql)"
    for _ in range(3):
        failures.blocked(SERVER, "jobs/claim_jobs", text, known_by="jobs/claim_jobs [7]")
    clock.now += 21
    failures.succeeded(SERVER, "jobs/claim_jobs")
    assert logged() == [
        ("WARNING", f"{text}; waiting"),
        ("INFO", "jobs/claim_jobs is no longer blocked, 21.0 s after the report"),
    ]


async def test_an_error_of_our_own_is_reported_once_with_its_traceback(logged, caplog, monkeypatch):
    monkeypatch.setattr("tenure.periodic.failures", Failures())  # other tests may have left an outage open in the shared one
    monkeypatch.setattr("tenure.periodic.backoff", lambda _: 0.001)
    turns = 0

    async def turn() -> float:
        nonlocal turns
        turns += 1
        if turns < 20:
            raise KeyError("no such thing")
        return FOREVER

    task = asyncio.create_task(PeriodicTask("duty", turn).run())
    await until(lambda: turns == 20)
    task.cancel()
    assert [level for level, _ in logged()] == ["ERROR", "INFO"]
    assert [record.exc_info is not None for record in caplog.records] == [True, False]
    assert logged()[1][1].startswith("duty: works again after 19 failed attempts")
