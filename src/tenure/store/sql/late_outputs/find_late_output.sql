-- find_late_output: the output of a completed job, and whether its run will still add it: the run marked that (owe_output) when it
-- completed the job, and its worker is not condemned.
select h.output::text,
       exists (select from tenure.watches w where w.job_id = h.claim_id and w.until > clock_timestamp())
       and exists (select from tenure.workers w where w.id = h.worker_id and w.died_at is null) as owed
  from tenure.history h
 where h.id = :id::uuid
