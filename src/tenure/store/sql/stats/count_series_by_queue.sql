-- count_series_by_queue: how many jobs of each queue were enqueued, started and ended in the last :seconds, in steps of :step seconds, and how
-- long they ran. Otherwise like count_series. One row for each step of a queue: to decode a row for each count took longer than to count.
select b.name, b.at, json_object_agg(b.what, b.jobs order by b.what)::text as counts, coalesce(extract(epoch from sum(b.ran)), 0)::float8 as ran
  from (select m.queue as name, date_bin(make_interval(secs => :step::float8), m.at, timestamptz '1970-01-01 00:00+00') as at, m.what,
               sum(m.jobs)::bigint as jobs, sum(m.ran) as ran
          from (/* include: counts_of_period */) m
         group by 1, 2, 3) b
 group by 1, 2
 order by 1, 2
