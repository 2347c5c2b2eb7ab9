-- list_workflow_steps: all that a workflow has recorded, in order, for people.
select s.name, s.what,
       case when s.state = 'open' and s.due_at <= clock_timestamp() then 'done' else s.state end as state,
       s.output::text as output, s.error, s.attempts, s.started_at, s.ended_at, s.due_at, s.fence
  from tenure.steps s
 where s.job_id = :id::uuid
 order by s.number, s.name
