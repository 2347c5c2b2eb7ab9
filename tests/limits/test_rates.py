"""In any window there are no more starts than the rate says, by PostgreSQL's clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from tenure.store import claims

BEGIN = datetime(2030, 1, 1, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return BEGIN + timedelta(seconds=seconds)


def started(database, tenant=None):
    rows = database.sql(
        "select started_at, input ->> 'tenant_id' from tenure.all_jobs where worker_id is not null order by started_at"
    )
    return [(when - BEGIN).total_seconds() for when, of in rows if tenant is None or of == tenant]


def most_in(starts, seconds):
    """Of all windows of that length, open at one end."""
    return max((sum(begin <= start < begin + seconds for start in starts) for begin in starts), default=0)


@pytest.fixture
def worker(database):
    worker = database.worker()
    database.sql("update tenure.workers set expires_at = '2040-01-01'")
    return worker


def test_a_burst_is_fine_and_then_the_window_must_pass(database, worker):
    database.limit("kind:work", rate=[3, 60])
    database.many(10)
    assert len(database.take(worker, now=at(0)).ids) == 3
    taken = database.take(worker, now=at(59.999))
    assert (taken.ids, taken.told["wait"]) == ([], pytest.approx(0.001))
    assert len(database.take(worker, now=at(60)).ids) == 3


def test_permits_become_free_one_by_one_as_they_were_used(database, worker):
    database.limit("kind:work", rate=[3, 60])
    database.many(10)
    for second in (0, 10, 20):
        assert len(database.take(worker, limit=1, now=at(second)).ids) == 1
    assert database.take(worker, now=at(59)).ids == []
    assert len(database.take(worker, now=at(65)).ids) == 1
    assert len(database.take(worker, now=at(75)).ids) == 1


@pytest.mark.parametrize("rate", [3, 100, 101, 250])
def test_no_window_ever_holds_more_whenever_workers_look(database, worker, rate):
    database.limit("kind:work", rate=[rate, 10])
    database.many(5 * rate)
    random, now = Random(rate), 0.0
    while now < 40:
        database.take(worker, limit=random.randint(1, rate), now=at(now))
        now += random.expovariate(2)
    starts = started(database)
    assert most_in(starts, 10) <= rate
    assert len(starts) >= 3 * rate * 0.9, "what is allowed is used"


def test_a_rate_of_each_key(database, worker):
    database.limit("kind:work", rate_per_key=[2, 10], rate=[5, 10], key="tenant_id")
    for tenant in "abcd":
        database.of(tenant, 10)
    for second in range(0, 40, 3):
        database.take(worker, limit=100, now=at(second))
    assert most_in(started(database), 10) == 5
    assert max(most_in(started(database, tenant), 10) for tenant in "abcd") == 2


def test_a_start_counts_even_if_its_job_comes_to_nothing(database, worker):
    database.limit("kind:work", rate=[1, 60])
    database.many(3)
    taken = database.take(worker, now=at(0))
    database.run(claims.disown(taken.held, ["default"]))
    assert database.take(worker, now=at(59)).ids == []


def test_starts_are_forgotten_when_no_window_reaches_back_to_them(database, worker):
    database.limit("kind:work", rate=[50, 1])
    database.many(500)
    for second in range(0, 40, 2):
        database.take(worker, limit=10, now=at(second))
    assert database.sql("select count(*) from tenure.starts") <= [(2,)]


def test_a_clock_that_goes_back_allows_nothing_more(database, worker):
    database.limit("kind:work", rate=[2, 60])
    database.many(10)
    assert len(database.take(worker, now=at(100)).ids) == 2
    assert database.take(worker, now=at(50)).ids == []


def test_a_changed_rate_counts_what_was_started_before(database, worker):
    database.limit("kind:work", rate=[2, 60])
    database.many(10)
    database.take(worker, now=at(0))
    database.limit("kind:work", rate=[3, 60])
    assert len(database.take(worker, now=at(1)).ids) == 1


def test_many_starts_are_kept_together_and_count_until_the_last_of_them_is_over(database, worker):
    """Of a rate of 200 in 10 s, those of a tenth of a second: the window is over a little too late, never too early."""
    database.limit("kind:work", rate=[200, 10])
    database.many(400)
    assert len(database.take(worker, limit=400, now=at(0.09)).ids) == 200
    assert database.take(worker, limit=400, now=at(10.05)).ids == []
    assert len(database.take(worker, limit=400, now=at(10.1)).ids) == 200
