-- clean_steps: removes the steps of workflows that are neither live nor in history, at most :limit. Run by a duty: the statement itself
-- checks holder and term. The ids of jobs grow with time, so only workflows that were enqueued more than :keep seconds ago are searched.
--   only  null, or the ctids to restrict it to; peek: removes nothing, and returns the ctids as JSON
-- Returns whether the term holds, the number of rows removed, and with peek the ctids.
with leader as materialized (
    select 1 from tenure.leases l
     where l.name = :duty and l.holder = :holder::uuid and l.term = :term::bigint and l.expires_at > clock_timestamp()
       for key share),
old as materialized (
    select s.ctid as tid
      from tenure.steps s
     where s.job_id < rpad(lpad(to_hex((extract(epoch from now() - make_interval(secs => :keep::float8)) * 1000)::bigint), 12, '0'), 32, '0')::uuid
       and exists (select from leader) and (:only::tid[] is null or s.ctid = any (:only::tid[]))
       and (select j.id from tenure.jobs j where j.id = s.job_id limit 1) is null
       and (select h.id from tenure.history h where h.id = s.job_id limit 1) is null
     order by s.job_id, s.name
     limit :limit::integer
       for update skip locked),
removed as (
    delete from tenure.steps s where s.ctid = any (array(select o.tid from old o where not :peek::boolean)) returning s.job_id)
select exists (select from leader) as holds, (select count(*) from removed) as removed,
       (select json_agg(o.tid)::text from old o where :peek::boolean) as peeked
