-- clean_dead: removes dead letters whose last run began more than :keep seconds ago, at most :limit. Run by a duty: the statement
-- itself checks holder and term. Skips dead letters that are being replayed.
--   only  null, or the ctids to restrict it to; peek: removes nothing, and returns the ctids as JSON
-- Returns whether the term holds, the number of rows removed, and with peek the ctids.
with leader as materialized (
    select 1 from tenure.leases l
     where l.name = :duty and l.holder = :holder::uuid and l.term = :term::bigint and l.expires_at > clock_timestamp()
       for key share),
old as materialized (
    select j.ctid as tid
      from tenure.jobs j
     where j.position = -1 and coalesce(j.started_at, j.enqueued_at) < now() - make_interval(secs => :keep::float8)
       and exists (select from leader) and (:only::tid[] is null or j.ctid = any (:only::tid[]))
     order by j.kind, j.id
     limit :limit::integer
       for update skip locked),
removed_jobs as (
    delete from tenure.jobs j where j.ctid = any (array(select o.tid from old o where not :peek::boolean)) and j.position = -1 
    returning j.id, j.kind, j.queue, case when j.dependants then coalesce(j.chain_id, j.id) end as chain),
ended as not materialized (
    select g.id, g.kind, g.queue, null::text as what, null::interval as waited, null::interval as ran, g.chain, 'deleted' as ending
      from removed_jobs g),
/* include: job_endings */
select exists (select from leader) as holds, (select count(*) from removed_jobs) as removed,
       (select json_agg(o.tid)::text from old o where :peek::boolean) as peeked
