-- forget_steps: removes failures of steps that have ended a run of their workflow, so that the next attempt tries these steps again. Only if
-- the run's claim is still the current one.
with held as materialized (
    select j.id from tenure.jobs j where j.id = :id::uuid and j.claim_id = :claim_id::uuid for share)
delete from tenure.steps s
 using held h
 where s.job_id = h.id and s.name = any (:names::text[]) and s.state = 'failed'
