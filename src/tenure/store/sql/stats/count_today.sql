-- count_today: how many jobs were enqueued, started and ended since 00:00 UTC, by queue, kind and what; with the seconds that they waited
-- and ran in total. Steps through the index of the counters, so that older hours are not read. Includes tallies that the leader has not
-- merged yet.
with recursive today as materialized (
    select date_trunc('day', now(), 'UTC') as began),
groups(queue, kind, what) as (
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
         cross join today d
         cross join lateral (
            select c.jobs, c.waited, c.ran from tenure.counters c
             where c.queue = g.queue and c.kind = g.kind and c.what = g.what and c.hour >= d.began) c
        union all
        select t.queue, t.kind, t.what, t.jobs, t.waited, t.ran from tenure.tallies t cross join today d where t.at >= d.began) m
 group by m.queue, m.kind, m.what
 order by m.queue, m.kind, m.what
