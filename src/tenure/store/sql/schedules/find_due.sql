-- find_due: schedules that are due, and schedules whose next time has not been computed yet, at most :limit of each.
-- Only reads, for the holder of the term. :skipped are the versions of schedules that cannot be run at present.
-- Returns one row: whether the term holds, the clock, the seconds until the next schedule is due, whether there are queued ticks to
-- release (see release_ticks), and the schedules as JSON.
with leader as materialized (
    select 1 from tenure.leases l
     where l.name = :duty and l.holder = :holder::uuid and l.term = :term::bigint and l.expires_at > clock_timestamp()
       for key share),
clock as materialized (
    select coalesce(:now::timestamptz, clock_timestamp()) as now),
due as materialized (
    (select s.name, s.version, s.since, s.kind, s.cron, s.every, s.timezone, s.overlap, s.catch_up, s.catch_up_limit, s.jitter
       from tenure.schedules s
      where s.paused_at is null and s.retired_at is null and s.next_at is null and exists (select from leader)
        and s.version <> all (:skipped::uuid[])
      limit :limit::integer)
    union all
    (select s.name, s.version, s.since, s.kind, s.cron, s.every, s.timezone, s.overlap, s.catch_up, s.catch_up_limit, s.jitter
       from tenure.schedules s
      where s.paused_at is null and s.retired_at is null and s.next_at <= (select c.now from clock c) and exists (select from leader)
        and s.version <> all (:skipped::uuid[])
      order by s.next_at
      limit :limit::integer))
select exists (select from leader) as holds,
       (select c.now from clock c),
       (select extract(epoch from s.next_at - (select c.now from clock c))::float8
          from tenure.schedules s
         where s.paused_at is null and s.retired_at is null and s.next_at > (select c.now from clock c)
         order by s.next_at limit 1) as next_due,
       exists (select from tenure.ticks t
                 left join tenure.schedules s on s.name = t.schedule
                where t.outcome = 'queued' and (s.name is null or s.paused_at is null)
                  and (s.retired_at is null or s.retired_at < (select c.now from clock c) - make_interval(secs => :patience::float8))) as queued,
       coalesce((select json_agg(d)::text from due d), '[]') as schedules
