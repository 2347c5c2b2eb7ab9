-- disown_jobs: running -> pending for jobs (:runs, by job and claim) that are held by a worker which does not know about them. No attempt
-- is used, and jobs keep their position, so the workers of these queues (:queues) look again below their cursors. They do so in any case:
-- while a lost connection still held its locks, other claims skipped the rows. A job that another session has locked is left out, because
-- outcomes wait for the connection of this statement: the next comparison finds it again.
-- Returns the jobs that were requeued.
with held as materialized (
    select j.id
      from json_to_recordset(:runs::json) as o(id uuid, claim_id uuid)
     cross join lateral (
        select j.id from tenure.jobs j where j.id = o.id and j.claim_id = o.claim_id limit 1 for no key update skip locked) j),
requeued as (
    update tenure.jobs j
       set state = 'pending', claim_id = null, held_group = null, lease_until = null, attempt = greatest(j.attempt - 1, 0)
     where j.id = any (array(select h.id from held h))
    returning j.id, j.kind),
announced_queues as (
    insert into tenure.queues as q (name, returns)
    select distinct s.name, 1 from unnest(:queues::text[]) as s(name)
    on conflict (name) do update set returns = q.returns + 1)
select r.id::text, r.kind from requeued r
