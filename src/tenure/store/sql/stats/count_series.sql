-- count_series: how many jobs were enqueued, started and ended in the last :seconds, in steps of :step seconds; of one queue or kind if
-- given.
select date_bin(make_interval(secs => :step::float8), m.at, timestamptz '1970-01-01 00:00+00') as at, m.what, sum(m.jobs)::bigint as jobs
  from (/* include: counts_of_period */) m
 where (:queue::text is null or m.queue = :queue::text) and (:kind::text is null or m.kind = :kind::text)
 group by 1, 2
 order by 1, 2
