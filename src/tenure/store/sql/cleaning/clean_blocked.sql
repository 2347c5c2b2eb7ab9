-- clean_blocked: removes what is stored about waiting jobs that exist neither live nor in history any more. Run by a duty: the statement
-- itself checks holder and term. Of all rows of blocked, the next :limit after :after are checked.
--   only  null, or the ids of jobs to restrict the removal to; peek: removes nothing, and returns the ids as JSON
-- Returns whether the term holds, the number of jobs whose rows were removed, the id after which to continue (null at the end of the
-- table), and with peek the ids.
with leader as materialized (
    select 1 from tenure.leases l
     where l.name = :duty and l.holder = :holder::uuid and l.term = :term::bigint and l.expires_at > clock_timestamp()
       for key share),
checked as materialized (
    select d.job_id
      from tenure.blocked d
     where d.job_id > :after::uuid and exists (select from leader)
     order by d.job_id
     limit :limit::integer),
gone as materialized (
    select c.job_id
      from checked c
     where (:only::uuid[] is null or c.job_id = any (:only::uuid[]))
       and (select j.id from tenure.jobs j where j.id = c.job_id limit 1) is null
       and (select h.id from tenure.history h where h.id = c.job_id limit 1) is null),
removed_blockers as (
    delete from tenure.blockers b where b.job_id = any (array(select g.job_id from gone g where not :peek::boolean))),
removed as (
    delete from tenure.blocked d where d.job_id = any (array(select g.job_id from gone g where not :peek::boolean)) returning d.job_id)
select exists (select from leader) as holds, (select count(*) from removed) as removed,
       (select c.job_id from checked c where (select count(*) from checked) = :limit::integer order by c.job_id desc limit 1) as next,
       case when :peek::boolean then (select json_agg(g.job_id)::text from gone g) end as peeked
