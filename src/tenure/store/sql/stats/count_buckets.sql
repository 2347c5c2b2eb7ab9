-- count_buckets: how long jobs that ended since 00:00 UTC waited and ran, as counts by bucket (see latency_bucket). Includes tallies that
-- the leader has not merged yet.
select m.queue, m.kind, m.measure, m.bucket, sum(m.jobs)::bigint as jobs
  from (select l.queue, l.kind, l.measure, l.bucket, l.jobs
          from tenure.latencies l
         where l.span = 'day' and l.at >= date_trunc('day', now(), 'UTC')
        union all
        select t.queue, t.kind, b.measure, b.bucket, t.jobs
          from tenure.tallies t
         cross join lateral (values ('waited', t.waited_bucket), ('ran', t.ran_bucket)) as b(measure, bucket)
         where t.at >= date_trunc('day', now(), 'UTC') and b.bucket is not null) m
 group by m.queue, m.kind, m.measure, m.bucket
 order by m.queue, m.kind, m.measure, m.bucket
