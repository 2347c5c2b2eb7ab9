-- condemn_unknown: inserts a row, already condemned, for each worker that holds jobs but has no row, so that return_jobs requeues them
-- like those of any dead worker. The same for jobs that are held under a claim that does not exist: they get a claim, of a worker with the
-- id of that claim. Run by a duty: the statement itself checks holder and term.
-- No statement of ours deletes the row of a worker or a claim that still holds a job; this is the safety net for rows that a person or a
-- restored dump removed. A claim writes all rows in one transaction and locks its worker's row, so a held job whose claim or worker is not
-- in the same snapshot is lost.
--   after, look  examine this many jobs for claims that do not exist, after this job: one search after the other covers all jobs
--   only  null, or the ids to restrict it to; peek: changes nothing, and returns the ids that it would insert
-- Returns whether the term holds, the ids of the workers, and the job after which to continue; null: start again.
with recursive leader as materialized (
    select 1 from tenure.leases l
     where l.name = :duty and l.holder = :holder::uuid and l.term = :term::bigint and l.expires_at > clock_timestamp()
       for key share),
-- Steps from one worker to the next in the index: never reads all claims.
holders(id) as (
    select (select c.worker_id from tenure.claims c order by c.worker_id limit 1)
    union all
    select (select c.worker_id from tenure.claims c where c.worker_id > h.id order by c.worker_id limit 1)
      from holders h where h.id is not null),
examined as materialized (
    select j.id, j.claim_id from tenure.jobs j where j.id > :after::uuid and exists (select from leader) order by j.id limit :look::integer),
lost_claims as materialized (
    select e.claim_id as id, array_agg(e.id) as job_ids
      from examined e
     where e.claim_id is not null and (select c.id from tenure.claims c where c.id = e.claim_id limit 1) is null
       and (:only::uuid[] is null or e.claim_id = any (:only::uuid[]))
     group by e.claim_id),
inserted_claims as (
    insert into tenure.claims (id, worker_id, job_ids)
    select l.id, l.id, l.job_ids from lost_claims l where not :peek::boolean
    on conflict (id) do nothing),
missing_workers as materialized (
    select h.id
      from holders h
     where h.id is not null and exists (select from leader) and not exists (select from tenure.workers w where w.id = h.id)
       and (:only::uuid[] is null or h.id = any (:only::uuid[]))
    union all
    select l.id from lost_claims l),
inserted_workers as (
    insert into tenure.workers (id, supervisor_id, host, pid, queues, kinds, capabilities, concurrency, version, expires_at, died_at, died_how)
    select l.id, l.id, 'unknown', 0, '[]', '[]', '[]', 0, '', clock_timestamp(), clock_timestamp(), 'expired'
      from missing_workers l
     where not :peek::boolean
    on conflict (id) do nothing
    returning id)
select exists (select from leader) as holds,
       coalesce(case when :peek::boolean then (select array_agg(l.id::text) from missing_workers l)
                     else (select array_agg(u.id::text) from inserted_workers u) end, '{}') as ids,
       case when (select count(*) from examined) >= :look::integer
            then (select e.id::text from examined e order by e.id desc limit 1) end as next
