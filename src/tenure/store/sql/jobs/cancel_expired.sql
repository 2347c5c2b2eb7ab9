-- cancel_expired: pending, scheduled, blocked, waiting -> canceled for jobs that were not started by the time at which they expire. Run by a
-- duty: the statement itself checks holder and term. A job that was claimed once does not expire any more, also if its run was lost.
--   only  null, or the ids to restrict it to; peek: changes nothing, and returns the ids that it would cancel
-- Returns whether the term holds, the number of jobs canceled, the seconds until the next one expires, and the jobs (or ids) as JSON. The
-- caller notifies the clients that wait for them, and the resolver if other jobs do.
with leader as materialized (
    select 1 from tenure.leases l
     where l.name = :duty and l.holder = :holder::uuid and l.term = :term::bigint and l.expires_at > clock_timestamp()
       for key share),
expired as materialized (
    select j.ctid as tid, j.id
      from tenure.jobs j
     where j.expires_at <= coalesce(:now::timestamptz, now()) and j.fence = 0 and j.claim_id is null and j.state <> 'dead_letter'
       and exists (select from leader) and (:only::uuid[] is null or j.id = any (:only::uuid[]))
     order by j.expires_at
     limit :limit::integer
       for update skip locked),
canceled as (
    delete from tenure.jobs j
     where j.ctid = any (array(select e.tid from expired e)) and not :peek::boolean
    returning j.*, coalesce(:now::timestamptz, clock_timestamp()) as ended_at),
finished as (
    insert into tenure.history (id, worker_id, started_at, finished_at, state, error, /* include: job_columns */)
    select id, null, null, ended_at, 'canceled', 'expired: it was not started by ' || expires_at, /* include: job_columns */
      from canceled),
recorded_incidents as (
    insert into tenure.incidents (job_id, at, what, error)
    select c.id, c.ended_at, 'canceled', 'expired: it was not started by ' || c.expires_at from canceled c),
ended as not materialized (
    select c.id, c.kind, c.queue, 'canceled' as what, null::interval as waited, null::interval as ran,
           case when c.dependants then coalesce(c.chain_id, c.id) end as chain, 'canceled' as ending
      from canceled c),
/* include: job_endings */
select exists (select from leader) as holds,
       (select count(*) from canceled) as canceled,
       (select extract(epoch from j.expires_at - coalesce(:now::timestamptz, now()))::float8
          from tenure.jobs j
         where j.expires_at > coalesce(:now::timestamptz, now())
         order by j.expires_at limit 1) as next_due,
       (select json_agg(json_build_object(
                   'job_id', c.id, 'kind', c.kind, 'reason', 'expired: it was not started by ' || c.expires_at,
                   'dependants', c.dependants, 'watched', c.id in (select a.id from awaited a)))::text
          from canceled c) as jobs,
       (select json_agg(e.id)::text from expired e where :peek::boolean) as peeked
