-- clean_default: removes finished jobs in the default partition whose retention is over, at most :limit. A duty's write: holder and term are checked by the statement itself.
--   only  null, or the places (ctid) to which it is restricted; peek: removes nothing, and returns the places as JSON
-- Returns whether the term holds, how many were removed, and the places that were asked for.
with leader as materialized (
    select 1 from tenure.leases l
     where l.name = :duty and l.holder = :holder::uuid and l.term = :term::bigint and l.expires_at > clock_timestamp()
       for key share),
longest as (
    select greatest(make_interval(secs => :keep::float8), (select max(r.keep) from tenure.retentions r)) as keep),
old as materialized (
    select h.ctid as place
      from tenure.history_default h
     where h.finished_at < now() - (select l.keep from longest l) and exists (select from leader)
       and (:only::tid[] is null or h.ctid = any (:only::tid[]))
     limit :limit::integer
       for update skip locked),
gone as (
    delete from tenure.history_default h where h.ctid = any (array(select o.place from old o where not :peek::boolean)) returning h.id)
select exists (select from leader) as holds, (select count(*) from gone) as removed,
       (select json_agg(o.place)::text from old o where :peek::boolean) as peeked
