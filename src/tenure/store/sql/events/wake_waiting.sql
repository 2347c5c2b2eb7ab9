-- wake_waiting: waiting -> pending for workflows whose event was sent, at most :limit unchecked waits. Run by a duty: the statement itself
-- checks holder and term.
--   only     null, or the ids of the jobs to restrict it to; peek: changes nothing, and returns the ids as JSON
--   listing  also returns the jobs that are pending now
-- A wait and an event are each looked at after their own commit, in a new snapshot, so the later of the two finds the other. A wait whose
-- job is locked stays unchecked, and is looked at again. An event counts when it has its position: number_events unchecks the waits for it.
-- A wait that was written again meanwhile has another fence, and is left alone.
-- The lock assigns the transaction its id before the position is taken: workers rely on that order.
-- Returns whether the term holds, the number of waits that need not be looked at again, the number of jobs, their queues, and with peek or
-- listing the ids or jobs as JSON.
with leader as materialized (
    select 1 from tenure.leases l
     where l.name = :duty and l.holder = :holder::uuid and l.term = :term::bigint and l.expires_at > clock_timestamp()
       for key share),
unchecked as materialized (
    select w.job_id, w.step, w.fence,
           exists (select from tenure.events e
                    where e.name = w.event and e.key = w.key and e.position > coalesce(w.after, 0)) as answered
      from tenure.waits w
     where not w.checked and exists (select from leader) and (:only::uuid[] is null or w.job_id = any (:only::uuid[]))
     order by w.job_id
     limit :limit::integer),
ready as materialized (
    select j.id, j.tid
      from (select distinct u.job_id, u.fence from unchecked u where u.answered) u
     cross join lateral (
        select j.id, j.ctid as tid from tenure.jobs j
         where j.id = u.job_id and j.state = 'waiting' and j.fence = u.fence
         limit 1 for no key update skip locked) j
     where not :peek::boolean),
placed as materialized (
    select r.tid, nextval('tenure.job_position') as position from (select r.tid from ready r order by r.id) r),
woken as (
    update tenure.jobs j
       set state = 'pending', position = p.position, run_at = null,
           -- Its limits may have changed since it was enqueued.
           limit_group = case when j.limit_group is not null then tenure.limit_group_of(j.kind, j.queue, j.input) end
      from placed p
     where j.ctid = p.tid
    returning j.id, j.kind, j.queue),
checked as (
    update tenure.waits w
       set checked = true
      from unchecked u
     where w.job_id = u.job_id and w.step = u.step and w.fence = u.fence and not w.checked and not :peek::boolean
       and (not u.answered or u.job_id in (select k.id from woken k)
            or (select j.id from tenure.jobs j where j.id = u.job_id and j.state = 'waiting' and j.fence = u.fence limit 1) is null)
    returning w.job_id)
select exists (select from leader) as holds, (select count(*) from checked) as checked, (select count(*) from woken) as touched,
       (select coalesce(array_agg(distinct k.queue), '{}') from woken k) as queues,
       case when :listing::boolean
            then (select json_agg(json_build_object('job_id', k.id, 'kind', k.kind, 'queue', k.queue))::text from woken k) end as jobs,
       (select json_agg(distinct u.job_id)::text from unchecked u where :peek::boolean) as peeked
