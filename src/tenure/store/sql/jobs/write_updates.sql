-- write_updates: stores what runs report: progress, log lines, heartbeats. Only for runs whose claim is still the current one.
--   lease        seconds from now until the job's own lease expires
--   first, last  the numbers of the log lines; only the last :keep_lines lines of each run are kept
-- Returns the ids whose claim is still current, and whether a client watches them. A locked row is being settled or requeued: it is
-- skipped, and its run checks its claim. A row that was changed between this statement's snapshot and its lock is also left out, since
-- the update by ctid does not find it: a heartbeat that was not written must be sent again.
with current_runs as materialized (
    select o.id, j.fence, j.tid, o.percent, o.message, o.lease, o.first, o.last, o.lines
      from jsonb_to_recordset(:updates::jsonb) as o(id uuid, claim_id uuid, percent double precision, message text,
           lease double precision, first integer, last integer, lines jsonb)
     cross join lateral (
        select j.fence, j.ctid as tid from tenure.jobs j where j.id = o.id and j.claim_id = o.claim_id
         limit 1 for no key update skip locked) j),
extended as (
    update tenure.jobs j
       set lease_until = coalesce(:now::timestamptz, clock_timestamp()) + make_interval(secs => o.lease)
      from current_runs o
     where j.ctid = o.tid and o.lease is not null
    returning j.id),
progressed as (
    insert into tenure.progress as p (job_id, fence, percent, message)
    select o.id, o.fence, o.percent, o.message from current_runs o where o.percent is not null
    on conflict (job_id) do update
       set fence = excluded.fence, percent = excluded.percent, message = excluded.message, updated_at = clock_timestamp()
     where p.fence <= excluded.fence),
logged as (
    insert into tenure.logs (job_id, fence, first_line, last_line, lines)
    select o.id, o.fence, o.first, o.last, o.lines from current_runs o where o.lines is not null
    on conflict do nothing),
trimmed as (
    delete from tenure.logs l
     using current_runs o
     where o.lines is not null and l.job_id = o.id and l.fence = o.fence and l.last_line <= o.last - :keep_lines::integer)
select o.id::text, exists (select from tenure.watches w where w.job_id = o.id) as watched
  from current_runs o
 where o.lease is null or o.id in (select e.id from extended e)
