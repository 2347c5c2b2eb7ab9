-- promote_jobs: scheduled, retry -> pending for jobs that are due, in the order of their due times. Run by a duty: the statement itself
-- checks holder and term.
--   only     null, or the ids to restrict it to; peek: changes nothing, and returns the ids that it would promote
--   listing  also returns the promoted jobs
-- Returns whether the term holds, the number of jobs promoted, their queues, the seconds until the next job is due, and with peek or
-- listing the ids or jobs as JSON. The caller announces the queues.
with leader as materialized (
    select 1 from tenure.leases l
     where l.name = :duty and l.holder = :holder::uuid and l.term = :term::bigint and l.expires_at > clock_timestamp()
       for key share),
due as materialized (
    select j.ctid as tid, j.id, j.run_at
      from tenure.jobs j
     where j.position = 0 and j.run_at <= coalesce(:now::timestamptz, now()) and exists (select from leader)
       and (:only::uuid[] is null or j.id = any (:only::uuid[]))
     order by j.run_at
     limit :limit::integer
       for no key update skip locked),
placed as materialized (
    select d.tid, nextval('tenure.job_position') as position from (select tid from due where not :peek::boolean order by run_at, id) d),
promoted as (
    update tenure.jobs j
       set state = 'pending', position = p.position,
           -- Its limits may have changed since it was enqueued.
           limit_group = case when j.limit_group is not null then tenure.limit_group_of(j.kind, j.queue, j.input) end
      from placed p
     where j.ctid = p.tid
    returning j.id, j.kind, j.queue)
select exists (select from leader) as holds,
       (select count(*) from promoted) as promoted,
       (select coalesce(array_agg(distinct p.queue), '{}') from promoted p) as queues,
       (select extract(epoch from j.run_at - coalesce(:now::timestamptz, now()))::float8
          from tenure.jobs j
         -- Before PostgreSQL 17, subtracting from infinity is an error.
         where j.position = 0 and j.run_at > coalesce(:now::timestamptz, now()) and j.run_at < 'infinity'
         order by j.run_at limit 1) as next_due,
       case when :listing::boolean
            then (select json_agg(json_build_object('job_id', p.id, 'kind', p.kind, 'queue', p.queue))::text from promoted p) end as jobs,
       (select json_agg(d.id)::text from due d where :peek::boolean) as peeked
