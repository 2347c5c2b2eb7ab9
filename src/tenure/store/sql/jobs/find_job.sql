-- find_job: the current state of one job, live or finished.
select a.id, a.kind, a.queue, a.state, a.priority, a.capability, a.attempt, a.max_attempts, a.crashes, a.fence, a.worker_id,
       a.enqueued_at, a.run_at, a.started_at, a.finished_at, a.error, a.input::text, a.output::text,
       a.timeout, a.key, a.parent_id, a.enqueued_by, a.auth::text, a.meta::text, a.system::text, a.limit_group,
       a.progress_percent, a.progress_message, a.failed_at, a.chain_id, a.next_id, a.expires_at, a.heartbeat_at
  from tenure.all_jobs a
 where a.id = :id::uuid
