-- job_columns: the columns that a job takes along to history as they are. A new column of both tables is added here.
worker_id, fence, enqueued_at, run_at, started_at, attempt, max_attempts, priority, crashes, kind, queue, capability, input, timeout, key,
parent_id, enqueued_by, auth, meta, system
