-- clean_watches: removes watches that are over, at most :limit. A duty's write: holder and term
-- are checked by the statement itself.
--   only  null, or the places (ctid) to which it is restricted; peek: removes nothing, and returns the places as JSON
-- Returns whether the term holds, how many were removed, and the places that were asked for.
with leader as materialized (
    select 1 from tenure.leases l
     where l.name = :duty and l.holder = :holder::uuid and l.term = :term::bigint and l.expires_at > clock_timestamp()
       for key share),
old as materialized (
    select c.ctid as place
      from tenure.watches c
     where c.until < now() and exists (select from leader)
       and (:only::tid[] is null or c.ctid = any (:only::tid[]))
     limit :limit::integer
       for update skip locked),
gone as (
    delete from tenure.watches c where c.ctid = any (array(select o.place from old o where not :peek::boolean)) returning c.job_id)
select exists (select from leader) as holds, (select count(*) from gone) as removed,
       (select json_agg(o.place)::text from old o where :peek::boolean) as peeked
