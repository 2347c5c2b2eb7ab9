-- clean_default: removes finished jobs from the default partition whose retention has ended, at most :limit. Run by a duty: the
-- statement itself checks holder and term.
--   only  null, or the ctids to restrict it to; peek: removes nothing, and returns the ctids as JSON
-- Returns whether the term holds, the number of rows removed, and with peek the ctids.
with leader as materialized (
    select 1 from tenure.leases l
     where l.name = :duty and l.holder = :holder::uuid and l.term = :term::bigint and l.expires_at > clock_timestamp()
       for key share),
longest as (
    select greatest(make_interval(secs => :keep::float8), (select max(r.keep) from tenure.retentions r)) as keep),
old as materialized (
    select h.ctid as tid
      from tenure.history_default h
     where h.finished_at < now() - (select l.keep from longest l) and exists (select from leader)
       and (:only::tid[] is null or h.ctid = any (:only::tid[]))
     limit :limit::integer
       for update skip locked),
removed as (
    delete from tenure.history_default h where h.ctid = any (array(select o.tid from old o where not :peek::boolean)) returning h.id)
select exists (select from leader) as holds, (select count(*) from removed) as removed,
       (select json_agg(o.tid)::text from old o where :peek::boolean) as peeked
