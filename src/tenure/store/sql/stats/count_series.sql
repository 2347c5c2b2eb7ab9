-- count_series: how many jobs were enqueued, started and ended in the last :seconds, in steps of :step seconds; of one queue or kind if
-- given. From the minutes of a day at most, from the hours beyond that or if the steps are whole hours. Includes tallies that the leader has not merged yet.
select to_timestamp(floor(extract(epoch from m.at) / :step::float8) * :step::float8) as at, m.what, sum(m.jobs)::bigint as jobs
  from (select c.minute as at, c.queue, c.kind, c.what, c.jobs from tenure.minutes c
         where :seconds::float8 <= 86400 and :step::float8 < 3600 and c.minute >= date_trunc('minute', now() - make_interval(secs => :seconds::float8))
        union all
        select c.hour, c.queue, c.kind, c.what, c.jobs from tenure.counters c
         where (:seconds::float8 > 86400 or :step::float8 >= 3600) and c.hour >= date_trunc('hour', now() - make_interval(secs => :seconds::float8))
        union all
        select t.at, t.queue, t.kind, t.what, t.jobs from tenure.tallies t
         where t.at >= now() - make_interval(secs => :seconds::float8)) m
 where (:queue::text is null or m.queue = :queue::text) and (:kind::text is null or m.kind = :kind::text)
 group by 1, 2
 order by 1, 2
