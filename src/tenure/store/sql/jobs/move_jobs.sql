-- move_jobs: running -> retry, scheduled, pending or dead_letter, for runs whose claim is still the current one.
--   what    the reason: failed, timed_out, snoozed, requeued, crashed
--   delay   seconds until the job is due again (retry, scheduled); until: the time itself
--   refund  1 if the run must not count as an attempt (snooze, shutdown, crash); crash: 1 if it counts as a crash
--   xact    if not null, the transaction that the handler opened: in any other, nothing is written
-- A requeued job (pending) keeps its position, so the workers of its queue are notified to look again below their cursors.
-- A job whose process died too often becomes a dead letter instead of the requested state.
-- Returns the ids moved, whether a client watches them, whether jobs wait for them and now learn of a dead letter, their state and error; a missing id has lost its lease.
-- Rows are found one by one, then moved by ctid, as in finish_jobs.
with found as materialized (
    select j.tid, j.attempt, j.fence, c.worker_id, c.at as started_at, o.claim_id, o.what, o.delay, o.until, o.refund, o.crash,
           case when q.error is null then o.state else 'dead_letter' end as state,
           coalesce(q.error || coalesce(', the last time: ' || o.error, ''), case when o.crash = 1 then 'its process died: ' end || o.error,
                    o.error) as error
      from jsonb_to_recordset(:outcomes::jsonb) as o(id uuid, claim_id uuid, state text, what text, delay double precision,
           until timestamptz, refund integer, crash integer, error text)
     cross join lateral (
        select j.ctid as tid, j.attempt, j.fence, j.crashes
          from tenure.jobs j where j.id = o.id and j.claim_id = o.claim_id limit 1 /* skip locked */) j
      left join tenure.claims c on c.id = o.claim_id
     cross join lateral (
        select case when o.crash = 1
                    then tenure.quarantine(j.crashes + 1, :max_crashes::integer, 'its process died {n} times while running it') end as error) q
     where :xact::text is null or pg_current_xact_id()::text = :xact::text),
moved as (
    update tenure.jobs j
       set state = f.state, claim_id = null, held_group = null, lease_until = null, started_at = coalesce(f.started_at, j.started_at),
           position = case when f.state = 'pending' then j.position when f.state = 'dead_letter' then -1
                           when f.until is null and f.delay is null then -2 else 0 end,
           run_at = coalesce(f.until, coalesce(:now::timestamptz, clock_timestamp()) + make_interval(secs => f.delay)),
           attempt = j.attempt - coalesce(f.refund, 0),
           crashes = j.crashes + coalesce(f.crash, 0),
           error = coalesce(f.error, j.error),
           -- It was started in time. A requeued job keeps its entry in every index.
           expires_at = case when f.state = 'pending' then j.expires_at end
      from found f
     where j.ctid = f.tid and j.claim_id = f.claim_id
    returning j.id, j.queue, j.kind, j.state, j.run_at, f.what, f.attempt, f.fence, f.worker_id, f.started_at, f.error, j.chain_id,
              j.dependants),
announced_queues as (
    insert into tenure.queues as q (name, returns)
    select distinct m.queue, 1 from moved m where m.state = 'pending'
    on conflict (name) do update set returns = q.returns + 1),
recorded_incidents as (
    insert into tenure.incidents (job_id, at, what, attempt, fence, worker_id, started_at, next_at, error)
    select m.id, coalesce(:now::timestamptz, clock_timestamp()), coalesce(m.what, 'failed'), m.attempt, m.fence, m.worker_id,
           m.started_at, m.run_at, m.error
      from moved m),
ended as not materialized (
    select m.id, m.kind, m.queue, case when m.state in ('retry', 'dead_letter') then m.state end as what,
           null::interval as waited, null::interval as ran,
           case when m.dependants and m.state = 'dead_letter' then coalesce(m.chain_id, m.id) end as chain, 'dead_letter' as ending
      from moved m),
/* include: job_endings */
select m.id::text, m.id in (select a.id from awaited a) as watched, m.id in (select c.id from ended_chains c) as dependants, m.state, m.error
  from moved m
