-- unblock_jobs: blocked, waiting -> pending, or scheduled if its time has not come, for jobs whose chains have all ended. Run by a duty: the
-- statement itself checks holder and term.
--   only     null, or the ids to restrict it to; peek: changes nothing, and returns the ids that it would move
--   listing  also returns the jobs
-- A job that another session has locked is left for the next round. A workflow that is held waits for a person. Jobs that end instead of
-- running: see end_blocked.
-- Returns whether the term holds, the number of jobs moved, their queues, whether some are scheduled, and with peek or listing the ids
-- or jobs as JSON. The caller announces the queues.
with leader as materialized (
    select 1 from tenure.leases l
     where l.name = :duty and l.holder = :holder::uuid and l.term = :term::bigint and l.expires_at > clock_timestamp()
       for key share),
ready as materialized (
    select d.ctid as row, j.tid, j.id, j.enqueued_at, j.was, j.later
      from tenure.blocked d
     cross join lateral (
        select j.ctid as tid, j.id, j.enqueued_at, j.state as was,
               j.state = 'blocked' and j.run_at > coalesce(:now::timestamptz, clock_timestamp()) as later
          from tenure.jobs j
         where j.id = d.job_id and j.state in ('blocked', 'waiting') and j.kind <> 'tenure.group' and not coalesce(j.system ? 'held', false)
         limit 1
           for no key update skip locked) j
     where d.missing = 0 and d.error is null and (d.failed is null or d.on_failure = 'run') and exists (select from leader)
       and (:only::uuid[] is null or d.job_id = any (:only::uuid[]))
     order by d.job_id
     limit :limit::integer),
placed as materialized (
    select r.tid, r.row, r.was, coalesce(r.later, false) as later, case when r.later then 0 else nextval('tenure.job_position') end as position
      from (select * from ready where not :peek::boolean order by enqueued_at, id) r),
moved as (
    update tenure.jobs j
       set state = case when p.later then 'scheduled' else 'pending' end, position = p.position,
           run_at = case when j.state = 'blocked' then j.run_at end,
           -- Its limits may have changed since it was enqueued.
           limit_group = case when j.limit_group is not null then tenure.limit_group_of(j.kind, j.queue, j.input) end
      from placed p
     where j.ctid = p.tid
    returning j.id, j.kind, j.queue, j.state, p.row, p.was, p.later),
released as (
    update tenure.blocked d set missing = null where d.ctid = any (array(select m.row from moved m)))
select exists (select from leader) as holds, (select count(*) from moved) as moved,
       (select coalesce(array_agg(distinct m.queue) filter (where not m.later), '{}') from moved m) as queues,
       (select coalesce(bool_or(m.later), false) from moved m) as scheduled,
       case when :listing::boolean
            then (select json_agg(json_build_object('job_id', m.id, 'kind', m.kind, 'queue', m.queue, 'was', m.was, 'state', m.state))::text
                    from moved m) end as jobs,
       (select json_agg(r.id)::text from ready r where :peek::boolean) as peeked
