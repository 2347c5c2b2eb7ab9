-- find_progress: how far a job says it is.
select p.percent, p.message, p.updated_at from tenure.progress p where p.job_id = :id::uuid
