-- promote_jobs: scheduled, retry -> pending for jobs that are due, in the order of their time. A duty's write: holder and
-- term are checked by the statement itself.
-- Returns whether the term holds, how many were promoted, and in how many seconds the next one is due.
with leader as materialized (
    select 1 from tenure.leases l
     where l.name = :duty and l.holder = :holder::uuid and l.term = :term::bigint and l.expires_at > clock_timestamp()
       for share),
due as materialized (
    select j.ctid as place, j.id, j.run_at
      from tenure.jobs j
     where j.state in ('scheduled', 'retry') and j.run_at <= coalesce(:now::timestamptz, now()) and exists (select from leader)
     order by j.run_at
     limit :limit::integer
       for no key update skip locked),
placed as materialized (
    select d.place, nextval('tenure.job_position') as position from (select place from due order by run_at, id) d),
promoted as (
    update tenure.jobs j
       set state = 'pending', position = p.position
      from placed p
     where j.ctid = p.place
    returning j.queue)
select exists (select from leader),
       (select count(*) from promoted),
       (select count(pg_notify(:channel, 'jobs ' || p.queue)) from (select distinct queue from promoted) p),
       (select extract(epoch from j.run_at - coalesce(:now::timestamptz, now()))::float8
          from tenure.jobs j
         where j.state in ('scheduled', 'retry') and j.run_at > coalesce(:now::timestamptz, now())
         order by j.run_at limit 1)
