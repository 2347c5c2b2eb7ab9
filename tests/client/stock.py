"""Many jobs of all sorts, live and finished, inserted at once."""

from __future__ import annotations

from typing import Any

from tests.store.database import Database
from tests.store.forged_jobs import position_of

# Ids rise with n, a second apart, as if each had been enqueued a second later.
STOCK = """
    create or replace function pg_temp.id_of(n integer) returns uuid language sql as $$
        select (lpad(to_hex((1700000000 + n)::bigint * 1000), 12, '0') || '7' || substr(md5(n::text), 1, 3)
                || '8' || substr(md5(n::text), 4, 15))::uuid $$;
    create or replace function pg_temp.sort_of(n integer, out kind text, out queue text, out priority smallint,
        out capability text, out input jsonb, out parent uuid, out enqueued_at timestamptz) language sql as $$
        select 'kind' || n % 5, 'queue' || n % 3, (array[25, 50, 75])[1 + n % 3]::smallint, case when n % 7 = 0 then 'gpu' end,
               jsonb_build_object('n', n, 'even', n % 2 = 0, 'tags', jsonb_build_array('t' || n % 4)),
               case when n % 11 = 0 then pg_temp.id_of(1) end, to_timestamp(1700000000 + n) $$;
    insert into tenure.workers (id, supervisor_id, host, pid, queues, kinds, capabilities, concurrency, version, expires_at)
    values (md5('worker')::uuid, gen_random_uuid(), 'here', 1, '["queue0"]', '["kind0"]', '[]', 10, '0', now() + interval '1h');
    insert into tenure.jobs (id, state, position, run_at, claim_id, kind, queue, priority, capability, input,
           parent_id, enqueued_at, key)
    select pg_temp.id_of(n), s.state, {position}, case when s.state in ('scheduled', 'retry') then now() + interval '1 hour' end,
           case when s.state = 'running' then gen_random_uuid() end,
           k.kind, k.queue, k.priority, k.capability, k.input, k.parent, k.enqueued_at,
           case when n % 13 = 0 then 'key' || n % 26 end
      from generate_series(1, {rows}) n
     cross join lateral pg_temp.sort_of(n) k
     cross join lateral (
        select (array['pending', 'running', 'scheduled', 'retry', 'dead_letter', 'blocked', 'waiting', 'running'])
               [1 + n / 4 % 8] as state) s
     where n % 4 = 0;
    insert into tenure.claims (id, worker_id, job_ids)
    select j.claim_id, md5('worker')::uuid, array[j.id] from tenure.jobs j where j.claim_id is not null;
    insert into tenure.keys (kind, key, job_id, scope, digest)
    select j.kind, j.key, j.id, 'live', '' from tenure.jobs j where j.key is not null order by j.id desc
    on conflict do nothing;
    -- A key belongs to one live job of its kind.
    update tenure.jobs j set key = null
     where j.key is not null and not exists (select from tenure.keys k where k.job_id = j.id);
    insert into tenure.history (id, fence, enqueued_at, started_at, finished_at, attempt, max_attempts, crashes, state, kind,
           queue, priority, capability, input, parent_id, key)
    select pg_temp.id_of(n), 1, k.enqueued_at, k.enqueued_at, now() - n % 3 * interval '1 day', 1, 3, 0,
           (array['completed', 'failed', 'canceled'])[1 + n % 3], k.kind, k.queue, k.priority, k.capability, k.input, k.parent,
           case when n % 13 = 0 then 'key' || n % 26 end
      from generate_series(1, {rows}) n
     cross join lateral pg_temp.sort_of(n) k
     where n % 4 <> 0;
    insert into tenure.tallies (queue, kind, what, jobs)
    select queue, kind, state, count(*) from tenure.history group by queue, kind, state;
"""


def lay_out(database: Database, rows: int) -> None:
    """A fourth of the jobs is live, in all states there are."""
    database.connection.execute(STOCK.format(rows=rows, position=position_of("s.state", "n")).encode(), prepare=False)


def id_of(database: Database, n: int) -> Any:
    return database.sql("select pg_temp.id_of(%s)", n)[0][0]
