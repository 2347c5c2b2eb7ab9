-- count_finished: how many jobs were settled of each queue and kind, and how; how many seconds they waited and ran in all.
-- What the leader has not merged yet counts as well. History is not looked at.
select c.queue, c.kind, c.what, sum(c.jobs)::bigint as jobs,
       coalesce(extract(epoch from sum(c.waited)), 0)::float8 as waited,
       coalesce(extract(epoch from sum(c.ran)), 0)::float8 as ran
  from (select c.queue, c.kind, c.what, c.jobs, c.waited, c.ran from tenure.counters c
        union all
        select t.queue, t.kind, t.what, t.jobs, t.waited, t.ran from tenure.tallies t) c
 where c.what not in ('enqueued', 'started')
 group by c.queue, c.kind, c.what
