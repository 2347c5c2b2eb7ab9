-- condemn_unknown: inserts a row, already condemned, for each worker that holds jobs but has no row, so that return_jobs requeues them
-- like those of any dead worker. Run by a duty: the statement itself checks holder and term.
-- No statement of ours deletes the row of a worker that still holds a job; this is the safety net for rows that a person or a restored
-- dump removed. A claim locks its worker's row, so a held job whose worker is not in the same snapshot is lost.
--   only  null, or the ids to restrict it to; peek: changes nothing, and returns the ids that it would insert
-- Returns whether the term holds, and the ids of the workers.
with recursive leader as materialized (
    select 1 from tenure.leases l
     where l.name = :duty and l.holder = :holder::uuid and l.term = :term::bigint and l.expires_at > clock_timestamp()
       for key share),
-- Steps from one worker to the next in the index: never reads all held jobs.
holders(id) as (
    select (select j.worker_id from tenure.jobs j where j.worker_id is not null order by j.worker_id limit 1)
    union all
    select (select j.worker_id from tenure.jobs j where j.worker_id > h.id order by j.worker_id limit 1)
      from holders h where h.id is not null),
missing_workers as materialized (
    select h.id
      from holders h
     where h.id is not null and exists (select from leader) and not exists (select from tenure.workers w where w.id = h.id)
       and (:only::uuid[] is null or h.id = any (:only::uuid[]))),
inserted_workers as (
    insert into tenure.workers (id, supervisor_id, host, pid, queues, kinds, capabilities, concurrency, version, expires_at, died_at, died_how)
    select l.id, l.id, 'unknown', 0, '[]', '[]', '[]', 0, '', clock_timestamp(), clock_timestamp(), 'expired'
      from missing_workers l
     where not :peek::boolean
    on conflict (id) do nothing
    returning id)
select exists (select from leader) as holds,
       coalesce(case when :peek::boolean then (select array_agg(l.id::text) from missing_workers l)
                     else (select array_agg(u.id::text) from inserted_workers u) end, '{}') as ids
