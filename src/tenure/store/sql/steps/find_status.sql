-- find_status: what a workflow last said about itself, as JSON.
select s.output::text as status from tenure.steps s where s.job_id = :id::uuid and s.name = '(status)' and s.what = 'status'
