-- cancel_jobs: any live state -> canceled, for these jobs; with :states, only while they are in one of these states.
-- A row that another session has locked is skipped: the job is being claimed, settled or moved, and the first session wins. Only jobs
-- in these states are locked: a claim would skip a locked pending job, and its worker would not look there again for a long time. A job
-- that leaves these states, or begins to roll back, at the same moment may still be locked: then the workers of its queue look again.
-- A workflow that has something to undo becomes pending instead, to run once more. From then on it is left alone: a second cancellation
-- would drop what is still to be undone. With :force it is canceled at once, and nothing more is undone.
-- The claim id is not copied to history: it would mean that this run ended the job.
-- Returns one row per job that was live and was not rolling back: whether it is canceled now (if not, call again), whether it was
-- running, whether a client watches it, whether jobs wait for it, its kind, and the queue in which it runs once more to undo what it has done.
with found as materialized (
    select j.tid, j.undoes
      from unnest(:ids::uuid[]) as i(id)
     cross join lateral (
        select j.ctid as tid, coalesce(j.system ? 'undo', false) and not :force::boolean as undoes
          from tenure.jobs j
         where j.id = i.id and (:states::text[] is null or j.state = any (:states::text[]))
           and (:force::boolean or not coalesce(j.system ? 'canceling', false))
         limit 1
           for update skip locked) j),
canceled as (
    delete from tenure.jobs j
     where j.ctid = any (array(select f.tid from found f where not f.undoes))
    returning j.*, coalesce(:now::timestamptz, clock_timestamp()) as ended_at),
placed as materialized (
    select f.tid, nextval('tenure.job_position') as position from found f where f.undoes),
undoing as (
    update tenure.jobs j
       set state = 'pending', position = p.position, run_at = null, lease_until = null, claim_id = null, held_group = null,
           -- The attempts of a dead letter are counted from the start, as if it were replayed.
           attempt = case when j.state = 'dead_letter' then 0 when j.claim_id is null then j.attempt else j.attempt - 1 end,
           crashes = case when j.state = 'dead_letter' then 0 else j.crashes end,
           system = j.system - 'held' || jsonb_build_object('canceling', :error::text)
      from placed p
     where j.ctid = p.tid
    returning j.id, j.queue, j.attempt, j.fence),
runs as materialized (
    select c.id, r.worker_id, r.at from canceled c join tenure.claims r on r.id = c.claim_id),
announced_queues as (
    insert into tenure.queues as q (name, returns)
    select distinct j.queue, 1
      from unnest(:ids::uuid[]) as i(id)
     cross join lateral (select j.id, j.queue, j.state, j.system from tenure.jobs j where j.id = i.id limit 1) j
     where (j.state = any (:states::text[]) or (j.system ? 'undo' and not j.system ? 'canceling'))
       and j.id not in (select c.id from canceled c) and j.id not in (select u.id from undoing u)
    on conflict (name) do update set returns = q.returns + 1),
finished as (
    insert into tenure.history (id, worker_id, started_at, finished_at, state, error, /* include: job_columns */)
    select id, r.worker_id, coalesce(r.at, started_at), ended_at, 'canceled', :error::text, /* include: job_columns */
      from canceled c
      left join runs r using (id)),
recorded_incidents as (
    insert into tenure.incidents (job_id, at, what, attempt, fence, worker_id, started_at, by, error)
    select c.id, c.ended_at, 'canceled', case when c.claim_id is not null then c.attempt end,
           case when c.claim_id is not null then c.fence end, r.worker_id, r.at, :by::text, :reason::text
      from canceled c
      left join runs r using (id)
    union all
    select u.id, coalesce(:now::timestamptz, clock_timestamp()), 'canceled', null, null, null, null, :by::text, :reason::text from undoing u),
ended as not materialized (
    select c.id, c.kind, c.queue, 'canceled' as what, coalesce(r.at, c.started_at) - c.enqueued_at as waited, c.ended_at - r.at as ran,
           case when c.dependants then coalesce(c.chain_id, c.id) end as chain, 'canceled' as ending
      from canceled c
      left join runs r using (id)),
/* include: job_endings */
select i.id, c.id is not null or u.id is not null as done, c.claim_id is not null or (u.id is not null and j.state = 'running') as ran,
       i.id in (select a.id from awaited a) as watched, i.id in (select e.id from ended_chains e) as dependants, j.kind, u.queue as undoing
  from unnest(:ids::uuid[]) as i(id)
  left join canceled c on c.id = i.id
  left join undoing u on u.id = i.id
 cross join lateral (select j.kind, j.state, j.system from tenure.jobs j where j.id = i.id limit 1) j
 where c.id is not null or u.id is not null
    or ((:states::text[] is null or j.state = any (:states::text[])) and (:force::boolean or not coalesce(j.system ? 'canceling', false)))
