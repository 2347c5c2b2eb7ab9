-- summarize_steps: for each of these workflows, how many steps are recorded and how many of them are done, both counted up to 1,000, and the
-- first three that it waits for, as JSON.
select i.id as job_id, n.steps, n.done, w.waits
  from unnest(:ids::uuid[]) as i(id)
 cross join lateral (
    select count(*) as steps, count(*) filter (where s.state = 'done' or s.due_at <= clock_timestamp() and s.what = 'sleep') as done
      from (select s.state, s.due_at, s.what from tenure.steps s
             where s.job_id = i.id and s.what not in ('status', 'value', 'patch', 'on_rollback') limit 1000) s) n
 cross join lateral (
    select json_agg(json_build_object('name', o.name, 'what', o.what, 'state', o.state, 'output', o.output, 'due_at', o.due_at) order by o.number)::text as waits
      from (select s.name, s.what, s.state, s.output, s.due_at, s.number from tenure.steps s
             where s.job_id = i.id and s.state in ('open', 'retry') and s.what <> 'status' order by s.number limit 3) o) w
