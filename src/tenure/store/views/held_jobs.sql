-- held_jobs: the jobs that workers hold now, found by the claims of each worker.
create or replace view tenure.held_jobs as
select c.worker_id, c.id as claim_id, c.at as started_at, j.*
  from tenure.claims c
 cross join lateral unnest(c.job_ids) as i(job_id)
 -- One probe per job, with any statistics.
 cross join lateral (
    select j.id, j.queue, j.kind, j.state, j.fence, j.limit_group from tenure.jobs j where j.id = i.job_id and j.claim_id = c.id limit 1) j;
