-- clean_latencies: removes latencies of minutes that ended more than a day ago, of hours after eight days, and of days that ended more than
-- :keep seconds ago, at most :limit. Run by a duty: the statement itself checks holder and term.
--   only  null, or the ctids to restrict it to; peek: removes nothing, and returns the ctids as JSON
-- Returns whether the term holds, the number of rows removed, and with peek the ctids.
with leader as materialized (
    select 1 from tenure.leases l
     where l.name = :duty and l.holder = :holder::uuid and l.term = :term::bigint and l.expires_at > clock_timestamp()
       for key share),
old as materialized (
    select c.tid
      from (values ('minute', interval '1 day'), ('hour', interval '8 days'),
                   ('day', make_interval(secs => :keep::float8))) as s(span, keep)
     cross join lateral (
        select c.ctid as tid from tenure.latencies c
         where c.span = s.span and c.at < now() - s.keep and exists (select from leader)
           and (:only::tid[] is null or c.ctid = any (:only::tid[]))
         order by c.at
         limit :limit::integer
           for update skip locked) c
     limit :limit::integer),
removed as (
    delete from tenure.latencies c where c.ctid = any (array(select o.tid from old o where not :peek::boolean)) returning c.at)
select exists (select from leader) as holds, (select count(*) from removed) as removed,
       (select json_agg(o.tid)::text from old o where :peek::boolean) as peeked
