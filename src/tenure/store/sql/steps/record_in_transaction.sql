-- record_in_transaction: stores the result of a step in the step's own transaction, if the run's claim is still the current one.
--   xact    the transaction that the step opened: in any other, nothing is written
--   stored  the names of steps whose storage was confirmed to the run: nothing is written if one of them is gone (see record_steps)
-- The share lock on the job is held until the step's transaction ends: no other run of the workflow begins before.
-- A step that is stored already stays as it is, unless it is tried again.
-- Returns the name of the step. No row: the run has lost its lease or earlier steps, or the step is stored already. Then the caller rolls back.
with held as materialized (
    select j.id, j.fence from tenure.jobs j where j.id = :id::uuid and j.claim_id = :claim_id::uuid and pg_current_xact_id()::text = :xact::text
       and not exists (select from unnest(:stored::text[]) as v(name)
                        where (select s.number from tenure.steps s where s.job_id = :id::uuid and s.name = v.name limit 1) is null)
     for share)
insert into tenure.steps as s (job_id, name, number, what, state, output, attempts, started_at, ended_at, fence)
select h.id, :name::text, :number::integer, 'transaction', 'done', :output::jsonb, :attempts::integer, now(), clock_timestamp(), h.fence
  from held h
on conflict (job_id, name) do update
   set state = excluded.state, output = excluded.output, error = null, attempts = excluded.attempts, ended_at = excluded.ended_at,
       fence = excluded.fence
 where s.state = 'retry'
returning name
