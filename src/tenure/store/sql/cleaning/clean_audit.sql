-- clean_audit: removes entries of the audit log that are older than :keep seconds, at most :limit, but none of the last 30 days. Run by a
-- duty: the statement itself checks holder and term.
--   only  null, or the ids to restrict it to; peek: removes nothing, and returns the ids as JSON
-- Returns whether the term holds, the number of rows removed, and with peek the ids.
with leader as materialized (
    select 1 from tenure.leases l
     where l.name = :duty and l.holder = :holder::uuid and l.term = :term::bigint and l.expires_at > clock_timestamp()
       for key share),
old as materialized (
    select a.id
      from tenure.audit a
     where a.at < now() - make_interval(secs => :keep::float8) and exists (select from leader)
       and (:only::bigint[] is null or a.id = any (:only::bigint[]))
     order by a.at
     limit :limit::integer)
select exists (select from leader) as holds,
       case when :peek::boolean then 0 else tenure.drop_audit(array(select o.id from old o)) end as removed,
       (select json_agg(o.id::text)::text from old o where :peek::boolean) as peeked
