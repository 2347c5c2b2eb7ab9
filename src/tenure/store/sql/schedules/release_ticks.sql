-- release_ticks: queued -> enqueued, the oldest of each schedule that has no live job any more, at most :limit schedules. Run by a duty:
-- the statement itself checks holder and term.
-- A paused schedule keeps its queued ticks. If it is deleted, or retired for more than :patience seconds, they are skipped.
--   only  null, or the names of the schedules to restrict it to; peek: changes nothing, and returns the names as JSON
-- Returns whether the term holds, the number of jobs enqueued, their queues, the number of ticks dropped and of schedules moved, and as
-- JSON the ticks that were written. The caller announces the queues.
with leader as materialized (
    select 1 from tenure.leases l
     where l.name = :duty and l.holder = :holder::uuid and l.term = :term::bigint and l.expires_at > clock_timestamp()
       for key share),
queued_ticks as materialized (
    select distinct on (t.schedule) t.schedule, t.planned_at, s.version,
           s.name is null or s.retired_at < coalesce(:now::timestamptz, now()) - make_interval(secs => :patience::float8) as over
      from tenure.ticks t
      left join tenure.schedules s on s.name = t.schedule
     where t.outcome = 'queued' and exists (select from leader)
       and (:only::text[] is null or t.schedule = any (:only::text[]))
     order by t.schedule, t.planned_at),
-- Checks the version: if the schedule changed while this waited for its row, what was read about its jobs is out of date.
locked_schedules as materialized (
    select s.name, w.planned_at, s.kind, s.input, s.queue, s.priority, s.capability, s.max_attempts, s.timeout, s.expires, tenure.uuid7() as job_id
      from queued_ticks w
      join tenure.schedules s on s.name = w.schedule
     where s.version = w.version and s.paused_at is null and s.retired_at is null and not :peek::boolean
       and not exists (select from (select t.job_id from tenure.ticks t
                                     where t.schedule = s.name and t.job_id is not null
                                     order by t.planned_at desc limit 100) t
                        where (select j.state from tenure.jobs j where j.id = t.job_id limit 1) <> 'dead_letter')
     order by s.name
     limit :limit::integer
       for update of s),
dropped as (
    update tenure.ticks t
       set outcome = 'skipped'
      from queued_ticks w
     where t.schedule = w.schedule and t.outcome = 'queued' and w.over and not :peek::boolean
    returning t.schedule, t.planned_at, t.outcome, t.times),
recorded_ticks as (
    update tenure.ticks t
       set outcome = 'enqueued', job_id = h.job_id
      from locked_schedules h
     where t.schedule = h.name and t.planned_at = h.planned_at and t.outcome = 'queued'
    returning t.schedule, t.planned_at, t.outcome, t.times, t.job_id),
new_jobs as materialized (
    select h.queue, h.planned_at,
           jsonb_build_object(
               'id', h.job_id, 'kind', h.kind, 'queue', h.queue, 'priority', h.priority, 'capability', h.capability,
               'max_attempts', h.max_attempts, 'timeout', h.timeout, 'expires', h.expires, 'input', h.input,
               'by', 'schedule ' || h.name,
               'system', jsonb_build_object('schedule', jsonb_build_object(
                   'name', h.name, 'for', h.planned_at,
                   'late', coalesce(:now::timestamptz, clock_timestamp()) - h.planned_at > make_interval(secs => :grace::float8)))) as job
      from recorded_ticks w
      join locked_schedules h on h.name = w.schedule),
enqueued as materialized (
    select e.id from tenure.enqueue((select coalesce(jsonb_agg(a.job order by a.planned_at), '[]')::text from new_jobs a)) e),
updated_schedules as (
    update tenure.schedules s set version = gen_random_uuid() from locked_schedules h where s.name = h.name returning s.name)
select exists (select from leader) as holds,
       (select count(*) from enqueued) as enqueued,
       (select coalesce(array_agg(distinct a.queue), '{}') from new_jobs a) as queues,
       (select count(*) from dropped) as dropped,
       (select count(*) from updated_schedules) as moved,
       (select json_agg(t)::text
          from (select w.schedule, w.planned_at, w.outcome, w.times, w.job_id from recorded_ticks w where :listing::boolean
                union all
                select d.schedule, d.planned_at, d.outcome, d.times, null from dropped d) t) as ticks,
       (select json_agg(w.schedule)::text from queued_ticks w where :peek::boolean) as peeked
