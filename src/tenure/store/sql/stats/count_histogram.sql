-- count_histogram: how long jobs that ended in the last :seconds had waited and run, as counts by bucket (see latency_bucket) in steps of
-- :step seconds; of one queue or kind if given. From the rows of each day, hour or minute (:span, of :width seconds), of which a step is a
-- multiple. Includes tallies that the leader has not merged yet. The rows are summed before the tallies are added: so PostgreSQL can read
-- them with parallel workers, and a busy day has hundreds of thousands of them. Rows that begin less than :width before the period are in it
-- in part: the condition is `at >= date_trunc(:span, ...)` without that function, which would be called for each row.
select m.at, m.measure, m.bucket, sum(m.jobs)::bigint as jobs
  from (select date_bin(make_interval(secs => :step::float8), l.at, timestamptz '1970-01-01 00:00+00') as at,
               l.measure, l.bucket, sum(l.jobs)::bigint as jobs
          from tenure.latencies l
         where l.span = :span::text and l.at > now() - make_interval(secs => :seconds::float8 + :width::float8)
           and (:queue::text is null or l.queue = :queue::text) and (:kind::text is null or l.kind = :kind::text)
         group by 1, 2, 3
        union all
        select date_bin(make_interval(secs => :step::float8), t.at, timestamptz '1970-01-01 00:00+00'), b.measure, b.bucket, t.jobs::bigint
          from tenure.tallies t
         cross join lateral (values ('waited', t.waited_bucket), ('ran', t.ran_bucket)) as b(measure, bucket)
         where t.at >= now() - make_interval(secs => :seconds::float8) and b.bucket is not null
           and (:queue::text is null or t.queue = :queue::text) and (:kind::text is null or t.kind = :kind::text)) m
 group by 1, 2, 3
 order by 1, 2, 3
