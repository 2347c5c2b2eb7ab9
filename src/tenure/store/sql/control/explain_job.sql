-- explain_job: a job (the columns of find_job), and all that may keep it from running.
--   waiting  jobs that are claimed before it; counts up to 1000
--   serving  how many living workers there are; of those, how many serve its queue; of those, know its kind; of those, have
--            its capability; and how many slots the last have, and how many jobs they hold
with job as materialized (
    select a.* from tenure.all_jobs a where a.id = :id::uuid limit 1),
place as materialized (
    select j.position
      from (select j.position, j.state from tenure.jobs j where j.id = :id::uuid limit 1) j
     where j.state = 'pending'),
alive as materialized (
    select w.id, w.concurrency,
           w.queues ? a.queue as queue,
           w.queues ? a.queue and w.kinds ? a.kind as kind,
           w.queues ? a.queue and w.kinds ? a.kind
               and (a.capability is null or w.capabilities ? a.capability) as capability
      from tenure.workers w
     cross join job a
     where w.died_at is null and w.expires_at > clock_timestamp()),
serving as (
    select count(*) as workers, count(*) filter (where w.queue) as queue, count(*) filter (where w.kind) as kind,
           count(*) filter (where w.capability) as capability,
           coalesce(sum(w.concurrency) filter (where w.capability), 0) as slots,
           coalesce(sum((select count(*) from tenure.jobs j where j.worker_id >= w.id and j.worker_id <= w.id)) filter (where w.capability), 0) as held
      from alive w),
higher as (
    select count(*) as jobs
      from (select from job a, place p, lateral (
                select from tenure.jobs j where j.state = 'pending' and j.queue = a.queue and j.priority > a.priority limit 1000) j) s),
earlier as (
    select count(*) as jobs
      from (select from job a, place p, lateral (
                select from tenure.jobs j
                 where j.state = 'pending' and j.queue = a.queue and j.priority = a.priority and j.position < p.position
                 limit 1000) j) s)
select a.id, a.kind, a.queue, a.state, a.priority, a.capability, a.attempt, a.max_attempts, a.crashes, a.fence, a.worker_id,
       a.enqueued_at, a.run_at, a.started_at, a.finished_at, a.error, a.input::text, a.output::text,
       a.timeout, a.key, a.parent_id, a.enqueued_by, a.auth::text, a.meta::text,
       clock_timestamp(), a.lease_expires_at, w.host, w.pid, q.paused_at, q.paused_by, q.pause_reason,
       exists (select from tenure.leases l where l.name = 'stager' and l.expires_at > clock_timestamp()),
       s.workers, s.queue, s.kind, s.capability, s.slots, s.held, least(h.jobs + e.jobs, 1000)
  from job a
 cross join serving s
 cross join higher h
 cross join earlier e
  left join tenure.workers w on w.id = a.worker_id
  left join tenure.queues q on q.name = a.queue
