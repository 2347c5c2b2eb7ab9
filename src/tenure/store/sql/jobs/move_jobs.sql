-- move_jobs: running -> retry, scheduled, pending or dead_letter, for runs whose claim is still the current one.
--   what    the reason: failed, timed_out, snoozed, requeued, crashed
--   delay   seconds until the job is due again (retry, scheduled); until: the time itself
--   refund  1 if the run must not count as an attempt (snooze, shutdown, crash); crash: 1 if it counts as a crash
--   xact    if not null, the transaction that the handler opened: in any other, nothing is written
-- A requeued job (pending) keeps its position, so the workers of its queue are notified to look again below their cursors.
-- Returns the ids moved, and whether a client watches them; a missing id has lost its lease.
-- Rows are found one by one, then moved by ctid, as in finish_jobs.
with found as materialized (
    select j.place, j.attempt, j.fence, j.worker_id, j.started_at, o.claim_id, o.state, o.what, o.delay, o.until, o.refund, o.crash, o.error
      from jsonb_to_recordset(:outcomes::jsonb) as o(id uuid, claim_id uuid, state text, what text, delay double precision,
           until timestamptz, refund integer, crash integer, error text)
     cross join lateral (
        select j.ctid as place, j.attempt, j.fence, j.worker_id, j.started_at
          from tenure.jobs j where j.id = o.id and j.claim_id = o.claim_id limit 1 /* skip locked */) j
     where :xact::text is null or pg_current_xact_id()::text = :xact::text),
moved as (
    update tenure.jobs j
       set state = f.state, claim_id = null, worker_id = null, lease_until = null,
           run_at = coalesce(f.until, coalesce(:now::timestamptz, clock_timestamp()) + make_interval(secs => f.delay)),
           attempt = j.attempt - coalesce(f.refund, 0),
           crashes = j.crashes + coalesce(f.crash, 0),
           error = coalesce(f.error, j.error)
      from found f
     where j.ctid = f.place and j.claim_id = f.claim_id
    returning j.id, j.queue, j.kind, j.state, j.run_at, f.what, f.attempt, f.fence, f.worker_id, f.started_at, f.error),
told as (
    insert into tenure.queues as q (name, returns)
    select distinct m.queue, 1 from moved m where m.state = 'pending'
    on conflict (name) do update set returns = q.returns + 1),
noted as (
    insert into tenure.incidents (job_id, at, what, attempt, fence, worker_id, started_at, next_at, error)
    select m.id, coalesce(:now::timestamptz, clock_timestamp()), coalesce(m.what, 'failed'), m.attempt, m.fence, m.worker_id,
           m.started_at, m.run_at, m.error
      from moved m),
tallied as (
    insert into tenure.tallies (queue, kind, what, jobs)
    select m.queue, m.kind, m.state, count(*) from moved m where m.state in ('retry', 'dead_letter') group by m.queue, m.kind, m.state)
select m.id::text, exists (select from tenure.watches w where w.job_id = m.id) as watched from moved m
