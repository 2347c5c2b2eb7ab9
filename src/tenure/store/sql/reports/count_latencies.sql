-- count_latencies: how long the finished jobs of the last :seconds waited and ran, as counts by bucket; of one queue or kind if given. By
-- minutes up to three hours, by hours up to seven days, by days beyond that; the first one as a whole. Includes tallies that the leader has
-- not merged yet.
select m.queue, m.kind, m.measure, m.bucket, sum(m.jobs)::bigint as jobs
  from (select l.queue, l.kind, l.measure, l.bucket, l.jobs
          from tenure.latencies l
         where l.span = case when :seconds::float8 <= 10800 then 'minute' when :seconds::float8 <= 604800 then 'hour' else 'day' end
           and l.at > now() - make_interval(secs => :seconds::float8
                   + case when :seconds::float8 <= 10800 then 60 when :seconds::float8 <= 604800 then 3600 else 86400 end)
        union all
        select t.queue, t.kind, b.measure, b.bucket, t.jobs
          from tenure.tallies t
         cross join lateral (values ('waited', t.waited_bucket), ('ran', t.ran_bucket)) as b(measure, bucket)
         where b.bucket is not null) m
 where (:queue::text is null or m.queue = :queue::text) and (:kind::text is null or m.kind = :kind::text)
 group by m.queue, m.kind, m.measure, m.bucket
 order by m.queue, m.kind, m.measure, m.bucket
