-- all_jobs: live and finished jobs in one shape, for reports and for SQL of your own.
create or replace view tenure.all_jobs as
select j.id, j.kind, j.queue, j.state, j.priority, j.capability, j.attempt, j.max_attempts, j.crashes, j.fence, j.claim_id, c.worker_id,
       j.enqueued_at, j.run_at, coalesce(c.at, j.started_at) as started_at, null::timestamptz as finished_at, j.error, j.input, null::jsonb as output,
       c.worker_id as lease_owner, least(w.expires_at, j.lease_until) as lease_expires_at, w.heartbeat_at,
       j.timeout, j.key, j.parent_id, j.enqueued_by, j.auth, j.meta, j.system, j.limit_group,
       coalesce((select p.percent from tenure.progress p where p.job_id = j.id), 0) as progress_percent,
       (select p.message from tenure.progress p where p.job_id = j.id) as progress_message,
       -- The last incident of a dead letter is the one that dead-lettered it. Read as a range, in the order of the index: with any
       -- statistics, every other way to read it would have to sort.
       case when j.state = 'dead_letter' then (
            select i.at from tenure.incidents i
             where i.job_id >= j.id and i.job_id <= j.id
             order by i.job_id desc, i.at desc limit 1) end as failed_at,
       coalesce(j.chain_id, j.id) as chain_id, null::uuid as next_id,
       -- A job that was started does not expire any more.
       case when j.fence = 0 then j.expires_at end as expires_at
  from tenure.jobs j
  left join tenure.claims c on c.id = j.claim_id
  left join tenure.workers w on w.id = c.worker_id
union all
select h.id, h.kind, h.queue, h.state, h.priority, h.capability, h.attempt, h.max_attempts, h.crashes, h.fence, h.claim_id, h.worker_id,
       h.enqueued_at, h.run_at, h.started_at, h.finished_at, h.error, h.input, h.output,
       null, null, null,
       h.timeout, h.key, h.parent_id, h.enqueued_by, h.auth, h.meta, h.system, null,
       coalesce((select p.percent from tenure.progress p where p.job_id = h.id), 0),
       (select p.message from tenure.progress p where p.job_id = h.id),
       case when h.state = 'failed' then h.finished_at end,
       coalesce(h.chain_id, h.id), h.next_id, null
  from tenure.history h;
