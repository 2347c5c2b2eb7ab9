-- load_steps: returns all that workflows have recorded, in order, for runs that continue them.
--   due_in  seconds until a wait ends
select s.job_id::text as job_id, s.name, s.number, s.what, s.state, s.output::text as output, s.error, s.attempts,
       extract(epoch from s.due_at - coalesce(:now::timestamptz, clock_timestamp()))::float8 as due_in,
       to_json(s.due_at) #>> '{}' as due_at
  from unnest(:ids::uuid[]) as i(id)
 cross join lateral (select s.* from tenure.steps s where s.job_id = i.id offset 0) s
 order by s.job_id, s.number, s.name
