-- find_dependent_jobs: the jobs that wait for the end of a chain, or have waited for it, at most :most: for a member its group, for a child its
-- workflow.
select j.id, j.kind, j.queue, j.state
  from (select distinct b.job_id from tenure.blockers b where b.chain_id = :chain_id::uuid order by b.job_id limit :most::integer) b
 cross join lateral (
    (select j.id, j.kind, j.queue, j.state from tenure.jobs j where j.id = b.job_id limit 1)
     union all
    (select h.id, h.kind, h.queue, h.state from tenure.history h where h.id = b.job_id limit 1)
     limit 1) j
 order by j.id
