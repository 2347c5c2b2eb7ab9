-- job_columns: the columns that a job takes along to history as they are. A new column of both tables is added here. The worker and the
-- start of its last run come from tenure.claims.
fence, enqueued_at, run_at, attempt, max_attempts, priority, crashes, kind, queue, capability, input, timeout, key,
parent_id, enqueued_by, auth, meta, system, chain_id
