-- condemn_workers: workers whose lease has expired can no longer claim or renew. Run by a duty: the statement itself checks holder and
-- term. Their jobs are requeued by a later statement, which then sees every claim.
--   only  null, or the ids to restrict it to; peek: changes nothing, and returns the ids that it would condemn as JSON
-- Returns whether the term holds, the number of workers condemned, whether condemned ones wait, the seconds until the next lease of a
-- worker or a job expires, whether a job's own lease has expired, and with peek the ids.
with leader as materialized (
    select 1 from tenure.leases l
     where l.name = :duty and l.holder = :holder::uuid and l.term = :term::bigint and l.expires_at > clock_timestamp()
       for key share),
expired as materialized (
    select w.id
      from tenure.workers w
     where w.died_at is null and w.expires_at <= coalesce(:now::timestamptz, clock_timestamp())
       and (:only::uuid[] is null or w.id = any (:only::uuid[]))
       and exists (select from leader) and :reap::boolean
       for no key update skip locked),
condemned as (
    update tenure.workers w
       set died_at = coalesce(:now::timestamptz, clock_timestamp()), died_how = 'expired'
      from expired e
     where w.id = e.id and not :peek::boolean
    returning w.id)
select exists (select from leader) as holds,
       (select count(*) from condemned) as workers,
       exists (select from tenure.workers w where w.died_at is not null) or exists (select from condemned) as waiting,
       extract(epoch from least(
           (select min(w.expires_at) from tenure.workers w where w.died_at is null),
           (select min(j.lease_until) from tenure.jobs j where j.lease_until > '-infinity')) - coalesce(:now::timestamptz,
           clock_timestamp()))::float8 as next_end,
       exists (select from tenure.jobs j where j.lease_until <= coalesce(:now::timestamptz, now())) as overdue,
       (select json_agg(e.id)::text from expired e where :peek::boolean) as peeked
