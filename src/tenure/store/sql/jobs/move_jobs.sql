-- move_jobs: running -> retry, scheduled, pending or dead_letter, for runs whose claim is still the current one.
--   delay   seconds until the job is due again (retry, scheduled)
--   refund  1 when the run must not count as an attempt (snooze, shutdown)
-- A job handed back keeps its place, so the workers of its queue are told to look again below their cursors.
-- Returns the ids moved; a missing id lost its lease.
-- Found one by one, then moved by place, as in finish_jobs.
with found as materialized (
    select j.place, o.claim_id, o.state, o.delay, o.refund, o.error
      from jsonb_to_recordset(:outcomes::jsonb) as o(id uuid, claim_id uuid, state text, delay double precision, refund integer, error text)
     cross join lateral (
        select j.ctid as place from tenure.jobs j where j.id = o.id and j.claim_id = o.claim_id limit 1) j),
moved as (
    update tenure.jobs j
       set state = f.state, claim_id = null, worker_id = null, lease_until = null,
           run_at = coalesce(:now::timestamptz, clock_timestamp()) + make_interval(secs => f.delay),
           attempt = j.attempt - coalesce(f.refund, 0),
           error = coalesce(f.error, j.error)
      from found f
     where j.ctid = f.place and j.claim_id = f.claim_id
    returning j.id, j.queue, j.state),
told as (
    insert into tenure.queues as q (name, returns)
    select distinct m.queue, 1 from moved m where m.state = 'pending'
    on conflict (name) do update set returns = q.returns + 1)
select m.id::text from moved m
