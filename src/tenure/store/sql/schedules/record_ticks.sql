-- record_ticks: records the decisions about planned times and enqueues their jobs, in one statement. Run by a duty: the statement itself
-- checks holder and term.
--   :moves  a JSON array: name; version, which must still be that of the schedule; since and next_at, its new values; and ticks, each
--           with planned_at, missed, times, until, and job_id and run_at of the job if one is to be enqueued
-- A time that already has a row gets neither a second row nor a job. While an earlier job of the schedule is live, overlap decides: skip
-- records the time as skipped, queue keeps it for later (at most catch_up_limit of them), allow enqueues it.
-- A dead letter does not count as live: it would stop its schedule for good.
-- Returns whether the term holds, the number of schedules moved and of jobs enqueued, the queues of those that are pending, whether others
-- are to run later, and as JSON the ticks written without a job (missed, skipped); with :listing all of them.
with leader as materialized (
    select 1 from tenure.leases l
     where l.name = :duty and l.holder = :holder::uuid and l.term = :term::bigint and l.expires_at > clock_timestamp()
       for key share),
locked_schedules as materialized (
    select s.name, s.kind, s.input, s.queue, s.priority, s.capability, s.max_attempts, s.timeout, s.expires, s.overlap, s.catch_up_limit,
           m.since, m.next_at, m.ticks
      from jsonb_to_recordset(:moves::jsonb) as m(name text, version uuid, since timestamptz, next_at timestamptz, ticks jsonb)
      join tenure.schedules s on s.name = m.name
     where s.version = m.version and s.paused_at is null and s.retired_at is null and exists (select from leader)
     order by s.name
       for update of s),
-- Every change of a schedule gives it a new version: what is read below belongs to the version that was checked above.
live_jobs as materialized (
    select h.name,
           exists (select from (select t.job_id from tenure.ticks t
                                 where t.schedule = h.name and t.job_id is not null
                                 order by t.planned_at desc limit 100) t
                    where (select j.state from tenure.jobs j where j.id = t.job_id limit 1) <> 'dead_letter') as live,
           (select count(*) from tenure.ticks t where t.schedule = h.name and t.outcome = 'queued') as queued
      from locked_schedules h),
planned_ticks as materialized (
    select h.name, h.overlap, h.catch_up_limit, b.live, b.queued, t.planned_at, t.until, t.times, t.missed, t.job_id, t.run_at,
           row_number() over (partition by h.name, t.missed order by t.planned_at) as nth
      from locked_schedules h
      join live_jobs b on b.name = h.name
     cross join lateral jsonb_to_recordset(h.ticks)
        as t(planned_at timestamptz, until timestamptz, times integer, missed boolean, job_id uuid, run_at timestamptz)),
decided as materialized (
    select w.name, w.planned_at, w.until, w.times, w.job_id, w.run_at,
           case when w.missed then 'missed'
                when w.overlap = 'allow' or (w.nth = 1 and not w.live and w.queued = 0) then 'enqueued'
                when w.overlap = 'queue' and w.queued + w.nth - (not w.live and w.queued = 0)::integer <= w.catch_up_limit then 'queued'
                else 'skipped' end as outcome
      from planned_ticks w),
recorded_ticks as (
    insert into tenure.ticks (schedule, planned_at, until, times, outcome, job_id, recorded_at)
    select d.name, d.planned_at, d.until, d.times, d.outcome, case when d.outcome = 'enqueued' then d.job_id end,
           coalesce(:now::timestamptz, clock_timestamp())
      from decided d
    on conflict (schedule, planned_at) do nothing
    returning schedule, planned_at, until, times, outcome, job_id),
new_jobs as materialized (
    select h.queue, d.run_at, w.planned_at,
           jsonb_build_object(
               'id', w.job_id, 'kind', h.kind, 'queue', h.queue, 'priority', h.priority, 'capability', h.capability,
               'max_attempts', h.max_attempts, 'timeout', h.timeout, 'run_at', d.run_at, 'input', h.input,
               'expires_at', coalesce(d.run_at, :now::timestamptz, clock_timestamp()) + make_interval(secs => h.expires),
               'by', 'schedule ' || h.name,
               'system', jsonb_build_object('schedule', jsonb_build_object(
                   'name', h.name, 'for', w.planned_at,
                   'late', coalesce(:now::timestamptz, clock_timestamp()) - w.planned_at > make_interval(secs => :grace::float8)))) as job
      from recorded_ticks w
      join locked_schedules h on h.name = w.schedule
      join decided d on d.name = w.schedule and d.planned_at = w.planned_at
     where w.outcome = 'enqueued'),
enqueued as materialized (
    select e.id from tenure.enqueue((select coalesce(jsonb_agg(a.job order by a.planned_at), '[]')::text from new_jobs a)) e),
updated_schedules as (
    update tenure.schedules s
       set since = h.since, next_at = h.next_at, version = gen_random_uuid(),
           last_at = coalesce((select max(d.planned_at) from decided d where d.name = h.name and d.outcome <> 'missed'), s.last_at)
      from locked_schedules h
     where s.name = h.name
    returning s.name)
select exists (select from leader) as holds,
       (select count(*) from updated_schedules) as moved,
       (select count(*) from enqueued) as enqueued,
       n.queues,
       n.scheduled,
       (select json_agg(w order by w.schedule, w.planned_at)::text from recorded_ticks w where :listing::boolean or w.outcome in ('missed', 'skipped')) as ticks
  from (select coalesce(array_agg(distinct a.queue) filter (where not a.later), '{}') as queues,
               coalesce(bool_or(a.later), false) as scheduled
          from (select a.queue, coalesce(a.run_at > clock_timestamp(), false) as later from new_jobs a) a) n
