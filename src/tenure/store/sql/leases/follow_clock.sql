-- follow_clock: corrects times that are in the future after the server's clock was set back. Leases of workers and jobs would last longer
-- by that difference, and starts would fill the window of their rate for longer; they are set to start now. Run by a duty: the statement
-- itself checks holder and term. Leases of duties are corrected when they are acquired.
--   only  null, or the rows to restrict it to; peek: changes nothing, and returns the rows that it would change as JSON.
--         A row is named by its table and its key.
-- Returns whether the term holds, the number of workers, jobs and starts changed, and with peek the rows.
with leader as materialized (
    select 1 from tenure.leases l
     where l.name = :duty and l.holder = :holder::uuid and l.term = :term::bigint and l.expires_at > clock_timestamp()
       for key share),
clock as materialized (
    select c.now, c.now + interval '5 s' as ahead
      from (select coalesce(:now::timestamptz, clock_timestamp()) as now) c
     where exists (select from leader)),
corrected_workers as (
    update tenure.workers w
       set heartbeat_at = c.now, expires_at = c.now + (w.expires_at - w.heartbeat_at)
      from clock c
     where w.died_at is null and w.heartbeat_at > c.ahead and not :peek::boolean
       and (:only::text[] is null or 'workers ' || w.id = any (:only::text[]))
    returning w.id),
corrected_jobs as (
    update tenure.jobs j
       set lease_until = c.now + (j.lease_until - r.at)
      from clock c, tenure.claims r
     where j.lease_until > c.ahead and r.id = j.claim_id and r.at > c.ahead and not :peek::boolean
       and (:only::text[] is null or 'jobs ' || j.id = any (:only::text[]))
    returning j.id, j.claim_id),
corrected_claims as (
    update tenure.claims r
       set at = c.now
      from clock c
     where r.at > c.ahead and r.id in (select j.claim_id from corrected_jobs j)
       -- It stays while a job under it is still to be corrected: that is how such a job is found.
       and not exists (
        select from unnest(r.job_ids) as i(id)
         cross join lateral (
            select j.id from tenure.jobs j where j.id = i.id and j.claim_id = r.id and j.lease_until > c.ahead limit 1) j
         where j.id not in (select k.id from corrected_jobs k))),
corrected_starts as (
    update tenure.starts s
       set ended = c.now, forget_at = c.now + (s.forget_at - s.ended)
      from clock c
     where s.began > c.ahead and s.ended > c.now and not :peek::boolean
       and (:only::text[] is null or 'starts ' || s.limit_group || ' ' || s.began = any (:only::text[]))
    returning s.limit_group)
select exists (select from leader) as holds, (select count(*) from corrected_workers) as workers,
       (select count(*) from corrected_jobs) as jobs, (select count(*) from corrected_starts) as starts,
       (select json_agg(a.name)::text
          from (select 'workers ' || w.id as name
                  from tenure.workers w, clock c where w.died_at is null and w.heartbeat_at > c.ahead
                union all
                select 'jobs ' || j.id
                  from tenure.jobs j, clock c, tenure.claims r
                 where j.lease_until > c.ahead and r.id = j.claim_id and r.at > c.ahead
                union all
                select 'starts ' || s.limit_group || ' ' || s.began
                  from tenure.starts s, clock c where s.began > c.ahead and s.ended > c.now) a
         where :peek::boolean) as peeked
