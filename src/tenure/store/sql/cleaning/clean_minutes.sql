-- clean_minutes: removes counts of minutes that ended more than a day ago, at most :limit. Run by a duty: the statement itself checks
-- holder and term.
--   only  null, or the ctids to restrict it to; peek: removes nothing, and returns the ctids as JSON
-- Returns whether the term holds, the number of rows removed, and with peek the ctids.
with leader as materialized (
    select 1 from tenure.leases l
     where l.name = :duty and l.holder = :holder::uuid and l.term = :term::bigint and l.expires_at > clock_timestamp()
       for key share),
old as materialized (
    select c.ctid as tid
      from tenure.minutes c
     where c.minute < now() - interval '1 day' and exists (select from leader)
       and (:only::tid[] is null or c.ctid = any (:only::tid[]))
     order by c.minute
     limit :limit::integer
       for update skip locked),
removed as (
    delete from tenure.minutes c where c.ctid = any (array(select o.tid from old o where not :peek::boolean)) returning c.minute)
select exists (select from leader) as holds, (select count(*) from removed) as removed,
       (select json_agg(o.tid)::text from old o where :peek::boolean) as peeked
