-- list_held_jobs: the jobs that a worker holds according to PostgreSQL.
select j.id::text as job_id, j.claim_id::text from tenure.jobs j where j.worker_id = :worker_id::uuid
