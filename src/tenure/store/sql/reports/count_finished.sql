-- count_finished: how many jobs of each queue and kind were settled, by outcome, and how many seconds they waited and ran in total.
-- Includes tallies that the leader has not merged yet. Does not read history.
select c.queue, c.kind, c.what, sum(c.jobs)::bigint as jobs,
       coalesce(extract(epoch from sum(c.waited)), 0)::float8 as waited,
       coalesce(extract(epoch from sum(c.ran)), 0)::float8 as ran
  from (select c.queue, c.kind, c.what, c.jobs, c.waited, c.ran from tenure.counters c
        union all
        select t.queue, t.kind, t.what, t.jobs, t.waited, t.ran from tenure.tallies t) c
 where c.what not in ('enqueued', 'started')
 group by c.queue, c.kind, c.what
