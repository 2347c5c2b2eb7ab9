-- count_series_by_queue: how many jobs of each queue were enqueued, started and ended in the last :seconds, in steps of :step seconds, and how
-- long they ran. Otherwise like count_series.
select m.queue as name, to_timestamp(floor(extract(epoch from m.at) / :step::float8) * :step::float8) as at, m.what,
       sum(m.jobs)::bigint as jobs, coalesce(extract(epoch from sum(m.ran)), 0)::float8 as ran
  from (/* include: counts_of_period */) m
 group by 1, 2, 3
 order by 1, 2, 3
