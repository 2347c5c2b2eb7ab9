-- find_late_output: the output of a completed job, and whether the run that completed it is still to add it: it said so when it
-- completed the job, and its worker was not declared dead.
select h.output::text,
       exists (select from tenure.watches w where w.job_id = h.claim_id and w.until > clock_timestamp())
       and exists (select from tenure.workers w where w.id = h.worker_id and w.died_at is null) as owed
  from tenure.history h
 where h.id = :id::uuid
