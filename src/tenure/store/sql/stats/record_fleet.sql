-- record_fleet: writes the current minute of the fleet's history: its workers, and what waits in each queue, counted up to :most. Run by a
-- duty: the statement itself checks holder and term. A minute that is recorded stays as it is.
-- Returns whether the term holds, and the seconds until the next minute.
with leader as materialized (
    select 1 from tenure.leases l
     where l.name = :duty and l.holder = :holder::uuid and l.term = :term::bigint and l.expires_at > clock_timestamp()
       for key share),
alive as materialized (
    select w.concurrency, w.memory_mb, w.app_version
      from tenure.workers w
     where w.died_at is null and w.expires_at > clock_timestamp() and exists (select from leader)),
waiting as materialized (
    select p.queue as name, sum(p.jobs) as pending, round(greatest(0, extract(epoch from clock_timestamp() - min(p.since))))::real as oldest
      from (/* include: pending_by_queue */) p
     where exists (select from leader)
     group by p.queue),
longest as (
    select w.name, w.pending, w.oldest from waiting w order by w.oldest desc, w.name limit 100),
recorded as (
    insert into tenure.fleet_minutes (minute, workers, slots, busy, pending, oldest_seconds, memory_mb, app_versions, queues)
    select date_trunc('minute', clock_timestamp()),
           (select count(*) from alive),
           (select coalesce(sum(a.concurrency), 0) from alive a),
           (select count(*) from tenure.held_jobs),
           (select coalesce(sum(w.pending), 0) from waiting w),
           (select coalesce(max(w.oldest), 0) from waiting w
             where not exists (select from tenure.queues q where q.name = w.name and q.paused_at is not null)),
           (select max(a.memory_mb) from alive a),
           (select coalesce(jsonb_agg(distinct a.app_version) filter (where a.app_version is not null), '[]') from alive a),
           (select coalesce(jsonb_agg(l), '[]') from longest l)
     where exists (select from leader)
    on conflict (minute) do nothing)
select exists (select from leader) as holds, (60 - extract(second from clock_timestamp()))::float8 as next_in
