-- finish_jobs: running -> completed, failed or canceled, for runs whose claim is still the current one.
--   ids       the jobs; claims: the claims of these runs
--   outcomes  by job: [claim, output, state, error]; without a state it is completed
--   xact      if not null, the transaction that the handler opened: in any other, nothing is written
-- Returns the ids moved to history, whether a client watches them, and whether jobs wait for them. A missing id has lost its lease (or
-- was moved by this same call before its connection broke).
--
-- Rows are found one by one, then deleted by ctid. Written as a join, the planner may scan all of jobs instead, because it expects a
-- single row if the queue was empty at the last vacuum. The claim is checked when the row is deleted. What history needs is returned by
-- the delete itself, each row with its own outcome: one pass over the rows.
with held as materialized (
    select c.id, c.worker_id, c.at from tenure.claims c where c.id = any (:claims::uuid[])),
settled as (
    delete from tenure.jobs j
     using held h
     where j.ctid = any (array(
            select x.tid
              from unnest(:ids::uuid[]) as i(id)
             cross join lateral (select x.ctid as tid from tenure.jobs x where x.id = i.id limit 1 /* skip locked */) x
             where :xact::text is null or pg_current_xact_id()::text = :xact::text))
       and h.id = j.claim_id and j.claim_id = (:outcomes::jsonb -> j.id::text ->> 0)::uuid
    returning j.*, h.worker_id, h.at as began_at, coalesce(:outcomes::jsonb -> j.id::text ->> 2, 'completed') as final,
              :outcomes::jsonb -> j.id::text -> 1 as output, :outcomes::jsonb -> j.id::text ->> 3 as last_error,
              coalesce(:now::timestamptz, clock_timestamp()) as ended_at),
ended as not materialized (
    select s.id, s.kind, s.queue, s.final as what, s.began_at - s.enqueued_at as waited, s.ended_at - s.began_at as ran,
           case when s.dependants then coalesce(s.chain_id, s.id) end as chain, s.final as ending
      from settled s),
/* include: job_endings */
insert into tenure.history (id, claim_id, worker_id, started_at, finished_at, state, error, output, /* include: job_columns */)
select id, claim_id, worker_id, began_at, ended_at, final, coalesce(last_error, error), nullif(output, 'null'), /* include: job_columns */
  from settled s
returning id::text, id in (select a.id from awaited a) as watched, id in (select c.id from ended_chains c) as dependants
