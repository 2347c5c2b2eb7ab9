-- find_step_versions: what changes about the steps of these workflows, to compare with what viewers have seen. Every write gives a row a
-- newer xmin, so the greatest one changes with each. Workflows without steps are left out.
select s.job_id, count(*) as steps, max(s.xmin::text::bigint) as newest
  from tenure.steps s
 where s.job_id = any (:ids::uuid[])
 group by s.job_id
