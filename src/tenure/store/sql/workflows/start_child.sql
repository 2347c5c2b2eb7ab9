-- start_child: enqueues a job for a workflow and stores its id as a step, both or neither. The function checks that the run still holds the
-- workflow's job, and keeps it from being taken away until the step is stored.
--   job    JSON: an array with one object, as tenure.enqueue() takes it, with parent and claim
--   again  true when the outcome of an earlier call is unknown
--   stored  the names of steps whose storage was confirmed to the run: nothing is written if one of them is gone (see record_steps)
-- Returns the id of the child: that of an earlier job if that has its key. No row: a step is gone.
with whole as materialized (
    select :job::text as job
     where not exists (select from unnest(:stored::text[]) as v(name)
                        where (select s.number from tenure.steps s where s.job_id = :id::uuid and s.name = v.name limit 1) is null)),
child as materialized (
    select e.id from whole w cross join lateral tenure.enqueue(w.job, :again::boolean) e),
recorded as (
    insert into tenure.steps (job_id, name, number, what, state, output, started_at, ended_at, fence)
    select :id::uuid, :name::text, :number::integer, :what::text, :state::text, jsonb_build_object('child', c.id), clock_timestamp(),
           case when :state::text = 'done' then clock_timestamp() end, :fence::bigint
      from child c
    on conflict (job_id, name) do nothing)
select c.id::text from child c
