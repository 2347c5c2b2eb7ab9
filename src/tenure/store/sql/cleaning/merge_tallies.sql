-- merge_tallies: adds the oldest tallies, at most :limit rows, to the counts of their minute and hour, and to the latencies of their
-- minute, hour and day. Run by a duty: the statement itself checks holder and term.
--   only  null, or the ctids to restrict it to; peek: changes nothing, and returns the ctids as JSON
-- Returns whether the term holds, the number of rows merged, and with peek the ctids.
with leader as materialized (
    select 1 from tenure.leases l
     where l.name = :duty and l.holder = :holder::uuid and l.term = :term::bigint and l.expires_at > clock_timestamp()
       for key share),
oldest as materialized (
    select t.ctid as tid
      from tenure.tallies t
     where exists (select from leader) and (:only::tid[] is null or t.ctid = any (:only::tid[]))
     limit :limit::integer
       for update skip locked),
merged as (
    delete from tenure.tallies t
     where t.ctid = any (array(select k.tid from oldest k where not :peek::boolean))
    returning t.*),
by_hour as (
    insert into tenure.counters as c (hour, queue, kind, what, jobs, waited, ran)
    select date_trunc('hour', m.at, 'UTC'), m.queue, m.kind, m.what, sum(m.jobs), coalesce(sum(m.waited), '0'), coalesce(sum(m.ran), '0')
      from merged m
     group by 1, 2, 3, 4
     order by 1, 2, 3, 4
    on conflict (queue, kind, what, hour) do update
       set jobs = c.jobs + excluded.jobs, waited = c.waited + excluded.waited, ran = c.ran + excluded.ran),
by_minute as (
    insert into tenure.minutes as c (minute, queue, kind, what, jobs, waited, ran)
    select date_trunc('minute', m.at), m.queue, m.kind, m.what, sum(m.jobs), coalesce(sum(m.waited), '0'), coalesce(sum(m.ran), '0')
      from merged m
     group by 1, 2, 3, 4
     order by 1, 2, 3, 4
    on conflict (minute, queue, kind, what) do update
       set jobs = c.jobs + excluded.jobs, waited = c.waited + excluded.waited, ran = c.ran + excluded.ran),
by_latency as (
    insert into tenure.latencies as c (at, span, queue, kind, measure, bucket, jobs)
    select date_trunc(s.span, m.at, 'UTC'), s.span, m.queue, m.kind, b.measure, b.bucket, sum(m.jobs)
      from merged m
     cross join (values ('minute'), ('hour'), ('day')) as s(span)
     cross join lateral (values ('waited', m.waited_bucket), ('ran', m.ran_bucket)) as b(measure, bucket)
     where b.bucket is not null
     group by 1, 2, 3, 4, 5, 6
     order by 2, 1, 3, 4, 5, 6
    on conflict (span, at, queue, kind, measure, bucket) do update set jobs = c.jobs + excluded.jobs)
select exists (select from leader) as holds, (select count(*) from merged) as merged,
       (select json_agg(k.tid)::text from oldest k where :peek::boolean) as peeked
