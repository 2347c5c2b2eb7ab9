-- run_schedule: enqueues a job of the schedule now, regardless of its plan and also if it is paused. A second call with the same :job_id,
-- because the reply to the first was lost, does not enqueue a second job.
-- Returns the kind and queue of the job. No row: no such schedule exists, or it is retired.
with schedule_row as materialized (
    select s.name, s.kind, s.input, s.queue, s.priority, s.capability, s.max_attempts, s.timeout, s.expires, clock_timestamp() as planned_at
      from tenure.schedules s
     where s.name = :name::text and s.retired_at is null
       for update),
existing_tick as materialized (
    select t.job_id
      from schedule_row h
     cross join lateral (
        select t.job_id
          from tenure.ticks t
         where t.schedule = h.name and t.job_id is not null and t.planned_at > h.planned_at - interval '10 minutes') t
     where t.job_id = :job_id::uuid),
recorded_tick as (
    insert into tenure.ticks (schedule, planned_at, outcome, job_id, by)
    select h.name, h.planned_at, 'enqueued', :job_id::uuid, coalesce(:by::text, session_user::text)
      from schedule_row h
     where not exists (select from existing_tick)
    returning schedule, planned_at),
updated_schedule as (
    update tenure.schedules s set version = gen_random_uuid() from recorded_tick w where s.name = w.schedule returning s.name),
enqueued as materialized (
    select e.id
      from (select coalesce(jsonb_agg(jsonb_build_object(
               'id', :job_id::uuid, 'kind', h.kind, 'queue', h.queue, 'priority', h.priority, 'capability', h.capability,
               'max_attempts', h.max_attempts, 'timeout', h.timeout, 'expires', h.expires, 'input', coalesce(:input::jsonb, h.input),
               'by', coalesce(:by::text, 'schedule ' || h.name),
               'system', jsonb_build_object('schedule', jsonb_build_object('name', h.name, 'for', w.planned_at, 'late', false)))),
               '[]')::text as jobs
              from recorded_tick w
              join schedule_row h on h.name = w.schedule) a
     cross join lateral tenure.enqueue(a.jobs) e)
select h.kind, h.queue, (select count(*) from enqueued) as enqueued, (select count(*) from updated_schedule) as moved from schedule_row h
