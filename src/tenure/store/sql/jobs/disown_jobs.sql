-- disown_jobs: running -> pending for what these claims took, of which their worker never heard. No attempt is spent.
-- All workers of these queues are told to look again below their cursors.
-- Returns how many came back.
with returned as (
    update tenure.jobs j
       set state = 'pending', claim_id = null, worker_id = null, lease_until = null, attempt = j.attempt - 1
     where j.worker_id = :worker_id::uuid and j.claim_id = any (:claim_ids::uuid[])
    returning j.id),
told as (
    insert into tenure.queues as q (name, returns)
    select distinct s.name, 1 from unnest(:queues::text[]) as s(name)
    on conflict (name) do update set returns = q.returns + 1)
select count(*) from returned
