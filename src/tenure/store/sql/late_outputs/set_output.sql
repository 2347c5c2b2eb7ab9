-- set_output: adds the output to a job that its own run has completed in a transaction of the handler.
with owed as (
    delete from tenure.watches w where w.job_id = :claim_id::uuid)
update tenure.history h
   set output = :output::jsonb
 where h.id = :id::uuid and h.claim_id = :claim_id::uuid and h.output is null
