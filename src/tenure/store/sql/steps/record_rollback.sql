-- record_rollback: stores that a workflow has registered something to undo, if the run's claim is still the current one. From then on, canceling
-- the job lets it run once more, to undo it.
-- The row is found by its id, not by its ctid: another session may change it at the same moment, as the resolver does when a job begins to
-- wait for this one. The step is stored only with the mark on the job: without that, a cancellation would undo nothing.
--   stored  the names of steps whose storage was confirmed to the run: nothing is written if one of them is gone (see record_steps)
-- Returns the runs that have stored it.
with marked as (
    update tenure.jobs j set system = coalesce(j.system, '{}') || '{"undo": true}'
     where j.id = :id::uuid and j.claim_id = :claim_id::uuid
       and not exists (select from unnest(:stored::text[]) as v(name)
                        where (select s.number from tenure.steps s where s.job_id = :id::uuid and s.name = v.name limit 1) is null)
    returning j.id, j.claim_id, j.fence),
recorded as (
    insert into tenure.steps (job_id, name, number, what, state, started_at, ended_at, fence)
    select m.id, :name::text, :number::integer, 'on_rollback', 'done', clock_timestamp(), clock_timestamp(), m.fence
      from marked m
    on conflict (job_id, name) do nothing)
select m.id::text as job_id, m.claim_id::text as claim_id from marked m
