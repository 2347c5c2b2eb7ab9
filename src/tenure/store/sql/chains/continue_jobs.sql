-- continue_jobs: running -> completed for runs whose claim is still the current one, and new -> pending, scheduled or blocked for the next
-- link of each chain, which the function enqueue writes.
--   ids       the jobs; claims: the claims of these runs
--   outcomes  by job: [claim, the next link as enqueue takes it]
--   xact      if not null, the transaction that the handler opened: in any other, nothing is written
-- The next link is enqueued from the row that was deleted: no link without the end of the one before, and no end without the next link.
-- If jobs wait for the end of the chain, the next link has the flag from the start. In history, the completed link names the next one.
-- Signals are sent to the chain, so its links note how far they have received them (signals, by name): the next link begins there.
-- A workflow that begins again keeps its capability (keeps_capability).
-- Returns the same as finish_jobs. Rows are found one by one, then deleted by ctid, as there.
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
    returning j.*, h.worker_id, h.at as began_at, :outcomes::jsonb -> j.id::text -> 1 as next,
              coalesce(:now::timestamptz, clock_timestamp()) as ended_at),
enqueued as materialized (
    select e.id
      from (select jsonb_agg(s.next - array['signals', 'keeps_capability'] || jsonb_build_object(
                       'parent', s.id, 'chain', coalesce(s.chain_id, s.id), 'dependants', s.dependants,
                       'system', coalesce(s.next -> 'system', '{}') || jsonb_build_object('link', coalesce((s.system ->> 'link')::integer, 1) + 1)
                           || case when s.system ? 'signals' or s.next ? 'signals'
                                   then jsonb_build_object('signals', coalesce(s.system -> 'signals', '{}') || coalesce(s.next -> 'signals', '{}'))
                                   else '{}' end)
                       || case when s.next ? 'keeps_capability' then jsonb_build_object('capability', s.capability) else '{}' end) as jobs
              from settled s) n
     cross join lateral tenure.enqueue(n.jobs::text) e
     where n.jobs is not null),
ended as not materialized (
    select s.id, s.kind, s.queue, 'completed' as what, s.began_at - s.enqueued_at as waited, s.ended_at - s.began_at as ran,
           null::uuid as chain, null::text as ending
      from settled s),
/* include: job_endings */,
finished as (
    insert into tenure.history (id, claim_id, worker_id, started_at, finished_at, state, error, next_id, /* include: job_columns */)
    select id, claim_id, worker_id, began_at, ended_at, 'completed', error, (next ->> 'id')::uuid, /* include: job_columns */
      from settled s
    returning id)
select f.id::text, f.id in (select a.id from awaited a) as watched, f.id in (select c.id from ended_chains c) as dependants
  from finished f
 where (select count(*) from enqueued) > 0
