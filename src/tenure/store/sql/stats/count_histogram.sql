-- count_histogram: how long jobs that ended in the last :seconds had waited and run, as counts by bucket (see latency_bucket) in steps of
-- :step seconds; of one queue or kind if given. By minutes up to a day, by hours beyond that. Includes tallies that the leader has not
-- merged yet.
select to_timestamp(floor(extract(epoch from m.at) / :step::float8) * :step::float8) as at, m.measure, m.bucket, sum(m.jobs)::bigint as jobs
  from (select l.at, l.queue, l.kind, l.measure, l.bucket, l.jobs
          from tenure.latencies l
         where l.span = case when :seconds::float8 <= 86400 then 'minute' else 'hour' end
           and l.at >= date_trunc(l.span, now() - make_interval(secs => :seconds::float8))
        union all
        select t.at, t.queue, t.kind, b.measure, b.bucket, t.jobs
          from tenure.tallies t
         cross join lateral (values ('waited', t.waited_bucket), ('ran', t.ran_bucket)) as b(measure, bucket)
         where t.at >= now() - make_interval(secs => :seconds::float8) and b.bucket is not null) m
 where (:queue::text is null or m.queue = :queue::text) and (:kind::text is null or m.kind = :kind::text)
 group by 1, 2, 3
 order by 1, 2, 3
