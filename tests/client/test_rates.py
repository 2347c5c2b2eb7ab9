"""What came in, started and ended by the minute, and how long it took."""

from __future__ import annotations

import pytest

from tenure.client.rates import latencies, percentile
from tenure.store import cleaning, jobs
from tenure.store.reports import LatencyRow


async def test_counts_and_latencies_are_the_same_before_and_after_the_rollup(client, database):
    worker = database.worker()
    database.enqueue({}, {}, {"queue": "mail"})
    database.run(jobs.finish(database.claim(worker).finished()))
    before = await client.minutes(), await client.latencies()
    assert {(count.queue, count.kind, count.what, count.jobs) for count in before[0]} == {
        ("default", "work", "enqueued", 2),
        ("default", "work", "started", 2),
        ("default", "work", "completed", 2),
        ("mail", "work", "enqueued", 1),
    }
    database.run(cleaning.merge_tallies(database.term("rollup"), limit=100))
    assert (await client.minutes(), await client.latencies()) == before
    assert [count.jobs for count in await client.minutes(queue="mail")] == [1]
    assert await client.latencies(kind="other") == []
    assert await client.latencies("2d") == before[1]


async def test_what_is_older_is_left_out(client, database):
    database.sql("insert into tenure.minutes values (now() - interval '2 hours', 'q', 'k', 'completed', 5)")
    database.sql("insert into tenure.latencies values (now() - interval '2 hours', 'minute', 'q', 'k', 'ran', 20, 5)")
    assert (await client.minutes("1h"), await client.latencies("1h")) == ([], [])
    assert [count.jobs for count in await client.minutes("3h")] == [5]
    assert [latency.jobs for latency in await client.latencies("3h")] == [5]


@pytest.mark.parametrize("seconds", [0.002, 0.05, 1.0, 30.0, 3600.0])
def test_a_percentile_is_right_to_within_a_fifth(database, seconds):
    [(bucket,)] = database.sql("select tenure.latency_bucket(make_interval(secs => %s))", seconds)
    assert percentile({bucket: 10}, 0.5) == pytest.approx(seconds, rel=0.2)


def test_percentiles_go_by_the_number_of_jobs():
    [latency] = latencies([LatencyRow("q", "k", "ran", bucket, jobs) for bucket, jobs in ((0, 90), (20, 9), (40, 1))])
    assert latency.jobs == 100
    assert latency.p50 < 0.002 < latency.p95 < 1.1
    assert latency.p99 == latency.p95
    assert percentile({0: 90, 20: 9, 40: 1}, 0.999) > 800
