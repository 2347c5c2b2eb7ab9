-- finish_jobs: running -> completed, failed or canceled, for runs whose claim is still the current one.
--   xact    if not null, the transaction that the handler opened: in any other, nothing is written
-- Returns the ids moved to history, and whether a client watches them. A missing id has lost its lease (or was moved by this same
-- call before its connection broke).
--
-- Rows are found one by one, then deleted by ctid. Written as a join, the planner may scan all of jobs instead, because it expects a
-- single row if the queue was empty at the last vacuum. The claim is checked again when the row is deleted.
with found as materialized (
    select j.place, o.claim_id, o.state, o.output, o.error
      from jsonb_to_recordset(:outcomes::jsonb) as o(id uuid, claim_id uuid, state text, output jsonb, error text)
     cross join lateral (
        select j.ctid as place from tenure.jobs j where j.id = o.id and j.claim_id = o.claim_id limit 1 /* skip locked */) j
     where :xact::text is null or pg_current_xact_id()::text = :xact::text),
settled as (
    delete from tenure.jobs j
     using found f
     where j.ctid = f.place and j.claim_id = f.claim_id
    returning j.*, coalesce(f.state, 'completed') as final, f.output, f.error as last_error,
              coalesce(:now::timestamptz, clock_timestamp()) as ended_at),
ended as not materialized (
    select s.id, s.kind, s.queue, s.final as what, s.started_at - s.enqueued_at as waited, s.ended_at - s.started_at as ran from settled s),
/* include: job_endings */
insert into tenure.history (id, claim_id, finished_at, state, error, output, /* include: job_columns */)
select id, claim_id, ended_at, final, coalesce(last_error, error), output, /* include: job_columns */
  from settled s
returning id::text, id in (select a.id from awaited a) as watched
