-- list_held_jobs: the jobs that a worker holds according to PostgreSQL.
select h.id::text as job_id, h.claim_id::text from tenure.held_jobs h where h.worker_id = :worker_id::uuid
