-- note_late_failure: records that the handler failed after its own session had completed the job. Only for the run that
-- completed the job. The incident has no fence, because it is not how that run ended.
insert into tenure.incidents (job_id, what, attempt, worker_id, started_at, error)
select h.id, 'failed_after_completion', h.attempt, h.worker_id, h.started_at, :error::text
  from tenure.history h
 where h.id = :id::uuid and h.claim_id = :claim_id::uuid
