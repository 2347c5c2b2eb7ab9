-- lose_claim: running -> pending for one run, as when the lease of its worker has expired: a crash is counted, no attempt is spent, and the
-- job keeps its position. The run itself is not notified, as in that case. Returns the queue.
with released as (
    update tenure.jobs j
       set state = 'pending', claim_id = null, held_group = null, lease_until = null,
           crashes = j.crashes + 1, attempt = greatest(j.attempt - 1, 0)
     where j.id = :id::uuid and j.claim_id = :claim_id::uuid
    returning j.id, j.kind, j.queue, j.attempt + 1 as attempt, j.fence),
recorded_incidents as (
    insert into tenure.incidents (job_id, what, attempt, fence) select r.id, 'lease_lost', r.attempt, r.fence from released r),
ended as not materialized (
    select r.id, r.kind, r.queue, null as what, null::interval as waited, null::interval as ran, null::uuid as chain, null::text as ending
      from released r),
/* include: job_endings */,
announced_queues as (
    insert into tenure.queues as q (name, returns)
    select r.queue, 1 from released r
    on conflict (name) do update set returns = q.returns + 1)
select r.queue from released r
