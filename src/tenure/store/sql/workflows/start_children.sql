-- start_children: enqueues jobs for one run of a workflow and stores their ids as steps, all or nothing. The function checks that the run
-- still holds the workflow's job, and keeps it from being taken away until the steps are stored.
--   jobs   JSON: an array of objects, as tenure.enqueue() takes it, each with id, parent and claim
--   again  true when the outcome of an earlier call with one of them is unknown
--   steps  JSON: by the id of the job, the step: [name, number, what, state]
--   stored  the names of steps whose storage was confirmed to the run: nothing is written if one of them is gone (see record_steps)
-- Returns for each job its id, and the id of the child: that of an earlier job if that has its key. No rows: a step is gone.
with whole as materialized (
    select :jobs::text as jobs
     where not exists (select from unnest(:stored::text[]) as v(name)
                        where (select s.number from tenure.steps s where s.job_id = :id::uuid and s.name = v.name limit 1) is null)),
children as materialized (
    select e.requested_id, e.id from whole w cross join lateral tenure.enqueue(w.jobs, :again::boolean) e),
recorded as (
    insert into tenure.steps (job_id, name, number, what, state, output, started_at, ended_at, fence)
    select :id::uuid, s.step ->> 0, (s.step ->> 1)::integer, s.step ->> 2, s.step ->> 3, jsonb_build_object('child', c.id), clock_timestamp(),
           case when s.step ->> 3 = 'done' then clock_timestamp() end, :fence::bigint
      from children c
     -- Looked up in the object: a join would compare each child with all steps.
     cross join lateral (select :steps::jsonb -> c.requested_id::text as step) s
    on conflict (job_id, name) do nothing)
select c.requested_id::text, c.id::text from children c
