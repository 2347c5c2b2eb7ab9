"""Millions of finished jobs of many sorts, for (l). Few kinds and queues do most of the work; one of each is rare."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks import burdens
from benchmarks.server import Probe, Server

# Spread over the days that have partitions; ids rise with time, as real ones do.
FINISHED = """
    insert into tenure.history (id, fence, enqueued_at, started_at, finished_at, attempt, max_attempts, priority, crashes,
           state, kind, queue, key, parent_id, error, input, output)
    select (lpad(to_hex((extract(epoch from t.at) * 1000)::bigint), 12, '0') || '7' || substr(md5(n::text), 1, 3)
               || '8' || substr(md5(n::text), 4, 15))::uuid,
           1, t.at - interval '2 seconds', t.at - interval '1 second', t.at, 1, 3, 50, 0, s.state,
           case when n %% 98000 = 0 then 'audit'
                when n %% 10 < 6 then 'thumbnail' when n %% 10 < 9 then 'mail' else 'invoice' end,
           case when n %% 100000 = 11 then 'seldom'
                when n %% 10 in (6, 7, 8) then 'mail' when n %% 7 < 5 then 'default' else 'bulk' end,
           case when n %% 100 = 6 then 'order-' || n when n %% 10 = 9 then 'account-' || n / 10 %% 10 end,
           case when n %% 20 = 3 then md5('batch' || n / 1000000)::uuid end,
           case when s.state = 'failed' then 'ValueError: the address is not known' end,
           jsonb_build_object('user', n %% 50000, 'to', 'someone' || n || '@example.com',
                              'region', (array['eu', 'us', 'asia'])[1 + n %% 3]),
           case when s.state = 'completed' then '{"size": 12345}'::jsonb end
      from (values (%s::bigint)) as g(count)
     cross join generate_series(1, g.count) as n
     cross join lateral (
        select date_trunc('day', now(), 'UTC') + (n - 1) * (interval '8 days' / g.count)) as t(at)
     cross join lateral (
        select case when n %% 49 = 0 then 'failed' when n %% 101 = 1 then 'canceled' else 'completed' end) as s(state)"""

# As the statements that write history do, and the leader after them.
COUNTED = """
    insert into tenure.counters (hour, queue, kind, what, jobs)
    select date_trunc('hour', h.finished_at), h.queue, h.kind, h.state, count(*) from tenure.history h group by 1, 2, 3, 4"""


@contextmanager
def laden(server: Server, count: int) -> Iterator[str]:
    with burdens.laden(server, FINISHED, count) as dsn:
        with Probe(dsn) as probe:
            probe.rows(COUNTED)
            probe.rows("vacuum (analyze) tenure.counters")
        yield dsn
