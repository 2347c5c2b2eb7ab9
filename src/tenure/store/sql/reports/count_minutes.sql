-- count_minutes: how many jobs were enqueued, started and ended per minute in the last :seconds; of one queue or kind if given.
-- Includes tallies that the leader has not merged yet.
select m.minute, m.queue, m.kind, m.what, sum(m.jobs)::bigint as jobs
  from (select c.minute, c.queue, c.kind, c.what, c.jobs from tenure.minutes c
         where c.minute >= date_trunc('minute', now() - make_interval(secs => :seconds::float8))
        union all
        select date_trunc('minute', t.at), t.queue, t.kind, t.what, t.jobs from tenure.tallies t
         where t.at >= date_trunc('minute', now() - make_interval(secs => :seconds::float8))) m
 where (:queue::text is null or m.queue = :queue::text) and (:kind::text is null or m.kind = :kind::text)
 group by m.minute, m.queue, m.kind, m.what
 order by m.minute, m.queue, m.kind, m.what
