-- find_progress: the progress that a job has reported.
select p.percent, p.message, p.updated_at from tenure.progress p where p.job_id = :id::uuid
