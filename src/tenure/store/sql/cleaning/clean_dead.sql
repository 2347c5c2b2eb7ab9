-- clean_dead: removes dead letters whose last run began more than :keep seconds ago, at most :limit. A duty's write: holder and
-- term are checked by the statement itself. What is being replayed at this moment is left alone.
--   only  null, or the places (ctid) to which it is restricted; peek: removes nothing, and returns the places as JSON
-- Returns whether the term holds, how many were removed, and the places that were asked for.
with leader as materialized (
    select 1 from tenure.leases l
     where l.name = :duty and l.holder = :holder::uuid and l.term = :term::bigint and l.expires_at > clock_timestamp()
       for key share),
old as materialized (
    select j.ctid as place
      from tenure.jobs j
     where j.state = 'dead_letter' and coalesce(j.started_at, j.enqueued_at) < now() - make_interval(secs => :keep::float8)
       and exists (select from leader) and (:only::tid[] is null or j.ctid = any (:only::tid[]))
     order by j.kind, j.id
     limit :limit::integer
       for update skip locked),
gone as (
    delete from tenure.jobs j where j.ctid = any (array(select o.place from old o where not :peek::boolean)) and j.state = 'dead_letter' returning j.id)
select exists (select from leader) as holds, (select count(*) from gone) as removed,
       (select json_agg(o.place)::text from old o where :peek::boolean) as peeked
