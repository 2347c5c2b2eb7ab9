-- counts_of_today: how many jobs were enqueued, started and ended since 00:00 UTC, by queue, kind and what; with the seconds that they waited
-- and ran in total. Steps through the index of the counters, so that older hours are not read. Includes tallies that the leader has not
-- merged yet.
with recursive groups(queue, kind, what) as (
    (select c.queue, c.kind, c.what from tenure.counters c order by c.queue, c.kind, c.what limit 1)
    union all
    select n.queue, n.kind, n.what
      from groups g
     cross join lateral (
        select c.queue, c.kind, c.what from tenure.counters c
         where (c.queue, c.kind, c.what) > (g.queue, g.kind, g.what)
         order by c.queue, c.kind, c.what limit 1) n)
select m.queue, m.kind, m.what, sum(m.jobs)::bigint as jobs,
       coalesce(extract(epoch from sum(m.waited)), 0)::float8 as waited,
       coalesce(extract(epoch from sum(m.ran)), 0)::float8 as ran
  from (select g.queue, g.kind, g.what, c.jobs, c.waited, c.ran
          from groups g
         cross join lateral (
            select c.jobs, c.waited, c.ran from tenure.counters c
             where c.queue = g.queue and c.kind = g.kind and c.what = g.what and c.hour >= date_trunc('day', now(), 'UTC')) c
        union all
        select t.queue, t.kind, t.what, t.jobs, t.waited, t.ran from tenure.tallies t
         where t.at >= date_trunc('day', now(), 'UTC')) m
 group by m.queue, m.kind, m.what
 order by m.queue, m.kind, m.what
