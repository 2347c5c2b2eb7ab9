-- clean_progress: removes progress older than :keep seconds of jobs that are no longer live, at most :limit. Run by a duty: the
-- statement itself checks holder and term.
--   only  null, or the ctids to restrict it to; peek: removes nothing, and returns the ctids as JSON
-- Returns whether the term holds, the number of rows removed, and with peek the ctids.
with leader as materialized (
    select 1 from tenure.leases l
     where l.name = :duty and l.holder = :holder::uuid and l.term = :term::bigint and l.expires_at > clock_timestamp()
       for key share),
old as materialized (
    select p.ctid as tid
      from tenure.progress p
     where p.began_at < now() - make_interval(secs => :keep::float8) and exists (select from leader)
       and (:only::tid[] is null or p.ctid = any (:only::tid[]))
       and (select j.id from tenure.jobs j where j.id = p.job_id limit 1) is null
     order by p.began_at
     limit :limit::integer
       for update skip locked),
removed as (
    delete from tenure.progress p where p.ctid = any (array(select o.tid from old o where not :peek::boolean)) returning p.job_id)
select exists (select from leader) as holds, (select count(*) from removed) as removed,
       (select json_agg(o.tid)::text from old o where :peek::boolean) as peeked
