"""(v) Every GET of the web server, in a database with millions of finished and pending jobs and three months of counters."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks import stock
from benchmarks.server import Probe, Server

TIMES = 15  # the median counts; PostgreSQL may change the plan of a prepared statement after its fifth run

# Ids rise with time, as real ones do: these are newer than all finished ones.
PENDING = """
    insert into tenure.jobs (id, state, position, kind, queue, priority, input)
    select (lpad(to_hex((extract(epoch from now() + interval '9 days') * 1000)::bigint + n / 100), 12, '0') || '7'
               || substr(md5(n::text), 1, 3) || '8' || substr(md5(n::text), 4, 15))::uuid,
           'pending', nextval('tenure.job_position'), (array['thumbnail', 'mail', 'invoice'])[1 + n %% 3],
           (array['default', 'mail', 'bulk'])[1 + n %% 3], 25 * (n %% 5), jsonb_build_object('user', n %% 50000)
      from generate_series(1, %s) as n"""

# Twenty kinds that ran in every hour of 90 days and every minute of the last one, each in eight buckets of either measure.
COUNTERS = """
    insert into tenure.counters (hour, queue, kind, what, jobs)
    select date_trunc('hour', now()) - h * interval '1 hour', 'queue' || k %% 5, 'kind' || k, w.what, 100
      from generate_series(0, 2159) as h cross join generate_series(1, 20) as k
     cross join (values ('enqueued'), ('started'), ('completed'), ('failed'), ('retry')) as w(what)
    on conflict do nothing;
    insert into tenure.minutes (minute, queue, kind, what, jobs)
    select date_trunc('minute', now()) - m * interval '1 minute', 'queue' || k %% 5, 'kind' || k, w.what, 2
      from generate_series(0, 1439) as m cross join generate_series(1, 20) as k
     cross join (values ('enqueued'), ('started'), ('completed'), ('failed'), ('retry')) as w(what);
    insert into tenure.latencies (at, span, queue, kind, measure, bucket, jobs)
    select date_trunc(s.span, now(), 'UTC') - n * s.step, s.span, 'queue' || k %% 5, 'kind' || k, m.measure, 10 + b, 10
      from (values ('minute', interval '1 minute', 1440), ('hour', interval '1 hour', 192),
                   ('day', interval '1 day', 90)) as s(span, step, many)
     cross join lateral generate_series(0, s.many - 1) as n
     cross join generate_series(1, 20) as k cross join (values ('waited'), ('ran')) as m(measure)
     cross join generate_series(1, 8) as b"""

TABLES = "tenure.jobs, tenure.history, tenure.counters, tenure.minutes, tenure.latencies"

PATHS = (
    "/jobs",
    "/jobs?state=pending",
    "/jobs?state=pending&queue=mail&kind=mail",
    "/jobs?state=completed",
    "/jobs?state=failed",
    "/jobs?state=dead_letter",
    "/jobs?state=running",
    "/jobs?kind=audit",
    "/jobs?queue=seldom",
    "/jobs?kind=mail&input=%7B%22region%22%3A%22eu%22%7D",
    "/jobs?key=key-7",
    "/jobs?parent=00000000-0000-7000-8000-000000000007",
    "/jobs?capability=gpu",
    "/chains",
    "/workflows",
    "/failures",
    "/findings",
    "/queues",
    "/limits",
    "/workers",
    "/leaders",
    "/schedules",
    "/kinds",
    "/audit",
    "/stats",
    "/stats/series?last=1h",
    "/stats/series?last=24h",
    "/stats/series?last=7d",
    "/stats/series?last=30d",
    "/stats/series?last=90d",
    "/stats/fleet?last=24h",
    "/stats/groups?last=24h",
    "/stats/groups?last=90d&by=kind",
    "/stats/histogram?last=24h",
    "/stats/histogram?last=90d",
    "/stats/latencies?last=1h",
    "/stats/latencies?last=24h",
    "/stats/latencies?last=7d",
    "/stats/latencies?last=30d",
    "/stats/latencies?last=90d",
    "/metrics",
)


@contextmanager
def laden(server: Server, finished: int, pending: int) -> Iterator[str]:
    with stock.laden(server, finished) as dsn:
        add_pending(dsn, pending)
        yield dsn


def add_pending(dsn: str, pending: int) -> None:
    with Probe(dsn) as probe:
        probe.rows(PENDING, pending)
        for statement in COUNTERS.replace("%%", "%").split(";"):
            probe.rows(statement)
        probe.rows(f"vacuum (freeze, analyze) {TABLES}")


def measure(dsn: str) -> dict[str, float]:
    """Milliseconds by path, for answers that were not kept from an earlier request."""
    command = [sys.executable, "-m", "tenure", "web", "--dsn", dsn, "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = json.loads(process.stdout.readline())["url"]
            return {path: _median(f"{url}/_api{path}") for path in PATHS}
        finally:
            process.terminate()


def _median(url: str) -> float:
    took = []
    for number in range(TIMES):
        began = time.perf_counter()
        with urllib.request.urlopen(_fresh(url, number)) as answer:
            answer.read()
        took.append((time.perf_counter() - began) * 1000)
        time.sleep(KEPT.get(re.sub(r".*/_api", "", url), 0.0))
    return sorted(took)[TIMES // 2]


def _fresh(url: str, number: int) -> str:
    """A period that is some seconds shorter each time: answers about the same one are used again for some seconds."""
    for name, seconds in PERIODS.items():
        url = url.replace(f"last={name}", f"last={seconds - number}s")
    return url


PERIODS = {"1h": 3600, "24h": 86400, "7d": 7 * 86400, "30d": 30 * 86400, "90d": 90 * 86400}
KEPT = {"/stats": 1.2, "/queues": 1.2, "/metrics": 1.2}
"""Seconds for which the server uses an answer again. /metrics also shows what is kept longer; both are due at times."""
