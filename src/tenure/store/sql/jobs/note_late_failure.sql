-- note_late_failure: the handler failed after a session of its own had completed the job. Only for the run that completed it.
-- Without a fence, because it is not how that run ended.
insert into tenure.incidents (job_id, what, attempt, worker_id, started_at, error)
select h.id, 'failed_after_completion', h.attempt, h.worker_id, h.started_at, :error::text
  from tenure.history h
 where h.id = :id::uuid and h.claim_id = :claim_id::uuid
