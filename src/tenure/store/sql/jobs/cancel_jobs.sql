-- cancel_jobs: any live state -> canceled, for these jobs; with :states, only while they are in one of these states.
-- A row that another session has locked is skipped: the job is being claimed, settled or moved, and the first session wins. Only jobs
-- in these states are locked: a claim would skip a locked pending job, and its worker would not look there again for a long time. A job
-- that leaves these states at the same moment may still be locked: then the workers of its queue look again.
-- The claim id is not copied to history: it would mean that this run ended the job.
-- Returns one row per job that was live: whether it is canceled now (if not, call again), whether it was running, whether a client
-- watches it, and its kind.
with found as materialized (
    select j.place
      from unnest(:ids::uuid[]) as i(id)
     cross join lateral (
        select j.ctid as place
          from tenure.jobs j
         where j.id = i.id and (:states::text[] is null or j.state = any (:states::text[]))
         limit 1
           for update skip locked) j),
canceled as (
    delete from tenure.jobs j
     where j.ctid = any (array(select f.place from found f))
    returning j.*, coalesce(:now::timestamptz, clock_timestamp()) as ended_at),
missed as (
    insert into tenure.queues as q (name, returns)
    select distinct j.queue, 1
      from unnest(:ids::uuid[]) as i(id)
     cross join lateral (select j.id, j.queue, j.state from tenure.jobs j where j.id = i.id limit 1) j
     where j.state = any (:states::text[]) and j.id not in (select c.id from canceled c)
    on conflict (name) do update set returns = q.returns + 1),
kept as (
    insert into tenure.history (id, worker_id, fence, enqueued_at, run_at, started_at, finished_at, attempt, max_attempts,
           priority, crashes, state, kind, queue, capability, error, input, timeout, key, parent_id, enqueued_by, auth, meta, system)
    select c.id, c.worker_id, c.fence, c.enqueued_at, c.run_at, c.started_at, c.ended_at, c.attempt, c.max_attempts,
           c.priority, c.crashes, 'canceled', c.kind, c.queue, c.capability, :error::text, c.input, c.timeout, c.key, c.parent_id,
           c.enqueued_by, c.auth, c.meta, c.system
      from canceled c),
noted as (
    insert into tenure.incidents (job_id, at, what, attempt, fence, worker_id, started_at, by, error)
    select c.id, c.ended_at, 'canceled', case when c.claim_id is not null then c.attempt end,
           case when c.claim_id is not null then c.fence end, c.worker_id,
           case when c.claim_id is not null then c.started_at end, :by::text, :reason::text
      from canceled c),
ended as not materialized (
    select c.id, c.kind, c.queue, 'canceled' as what, c.started_at - c.enqueued_at as waited,
           case when c.claim_id is not null then c.ended_at - c.started_at end as ran
      from canceled c),
/* include: job_endings */
select i.id, c.id is not null as done, c.claim_id is not null as ran,
       i.id in (select a.id from awaited a) as watched, j.kind
  from unnest(:ids::uuid[]) as i(id)
  left join canceled c on c.id = i.id
 cross join lateral (select j.kind, j.state from tenure.jobs j where j.id = i.id limit 1) j
 where c.id is not null or :states::text[] is null or j.state = any (:states::text[])
