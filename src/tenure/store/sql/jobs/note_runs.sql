-- note_runs: what runs tell on their way: progress, log lines, signs of life. Only for runs whose claim is still the current one.
--   lease        seconds by which the job's own lease goes on from now
--   first, last  the numbers of the log lines; of each run only the last :keep_lines lines stay
-- Returns the ids that are still ours, and whether somebody watches them. A row that is locked just now is being settled or
-- taken away: it is left alone, and its run asks what became of it. So is one that was changed between this statement's
-- snapshot and its lock, whose lease the update by place does not find: a heartbeat that is not written must be sent again.
with ours as materialized (
    select o.id, j.fence, j.place, o.percent, o.message, o.lease, o.first, o.last, o.lines
      from jsonb_to_recordset(:notes::jsonb) as o(id uuid, claim_id uuid, percent double precision, message text,
           lease double precision, first integer, last integer, lines jsonb)
     cross join lateral (
        select j.fence, j.ctid as place from tenure.jobs j where j.id = o.id and j.claim_id = o.claim_id
         limit 1 for no key update skip locked) j),
extended as (
    update tenure.jobs j
       set lease_until = coalesce(:now::timestamptz, clock_timestamp()) + make_interval(secs => o.lease)
      from ours o
     where j.ctid = o.place and o.lease is not null
    returning j.id),
progressed as (
    insert into tenure.progress as p (job_id, fence, percent, message)
    select o.id, o.fence, o.percent, o.message from ours o where o.percent is not null
    on conflict (job_id) do update
       set fence = excluded.fence, percent = excluded.percent, message = excluded.message, updated_at = clock_timestamp()
     where p.fence <= excluded.fence),
logged as (
    insert into tenure.logs (job_id, fence, first_line, last_line, lines)
    select o.id, o.fence, o.first, o.last, o.lines from ours o where o.lines is not null
    on conflict do nothing),
trimmed as (
    delete from tenure.logs l
     using ours o
     where o.lines is not null and l.job_id = o.id and l.fence = o.fence and l.last_line <= o.last - :keep_lines::integer)
select o.id::text, exists (select from tenure.watches w where w.job_id = o.id) as watched
  from ours o
 where o.lease is null or o.id in (select e.id from extended e)
