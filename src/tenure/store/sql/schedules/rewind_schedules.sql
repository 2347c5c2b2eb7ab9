-- rewind_schedules: plans schedules again from now on if future times were recorded for them, because the server's clock was ahead for
-- some time. Run by a duty: the statement itself checks holder and term.
-- Future times that were recorded without a job (missed, skipped) are deleted. A time whose job was enqueued is not repeated.
--   only  null, or the names to restrict it to; peek: changes nothing, and returns the names that it would rewind
-- Returns whether the term holds, and the names.
with leader as materialized (
    select 1 from tenure.leases l
     where l.name = :duty and l.holder = :holder::uuid and l.term = :term::bigint and l.expires_at > clock_timestamp()
       for key share),
clock as materialized (
    select coalesce(:now::timestamptz, clock_timestamp()) as now),
ahead as materialized (
    select s.name
      from tenure.schedules s
     where s.since > (select c.now from clock c) + make_interval(secs => :grace::float8) and exists (select from leader)
       and (:only::text[] is null or s.name = any (:only::text[]))
     order by s.name
       for update),
removed_ticks as (
    delete from tenure.ticks t
     using ahead a
     where not :peek::boolean and t.schedule = a.name and t.planned_at > (select c.now from clock c) and t.outcome in ('missed', 'skipped')),
rewound as (
    update tenure.schedules s
       set since = (select c.now from clock c), next_at = null, version = gen_random_uuid(),
           last_at = (select max(t.planned_at) from tenure.ticks t
                       where t.schedule = s.name and t.outcome <> 'missed' and t.planned_at <= (select c.now from clock c))
      from ahead a
     where not :peek::boolean and s.name = a.name
    returning s.name)
select exists (select from leader) as holds,
       coalesce(case when :peek::boolean then (select array_agg(a.name order by a.name) from ahead a)
                     else (select array_agg(r.name order by r.name) from rewound r) end, '{}') as names
