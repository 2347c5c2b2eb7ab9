-- complete_links: any live state -> completed, without a run, for these jobs (:ids), each with the output that :outputs has for its id.
-- A row that another session has locked is skipped: the job is being claimed, settled or moved, and the first session wins. A locked
-- pending job may be skipped by a claim: then the workers of its queue look again.
-- The claim id is not copied to history: it would mean that this run ended the job. Its run is aborted, and learns that the job is
-- completed.
-- Returns one row per job that was live: whether it is completed now (if not, call again), whether it was running, whether a client
-- watches it, whether jobs wait for it, and its kind.
with found as materialized (
    select j.tid
      from unnest(:ids::uuid[]) as i(id)
     cross join lateral (
        select j.ctid as tid from tenure.jobs j where j.id = i.id limit 1 for update skip locked) j),
completed as (
    delete from tenure.jobs j
     where j.ctid = any (array(select f.tid from found f))
    returning j.*, coalesce(:now::timestamptz, clock_timestamp()) as ended_at),
runs as materialized (
    select c.id, r.worker_id, r.at from completed c join tenure.claims r on r.id = c.claim_id),
announced_queues as (
    insert into tenure.queues as q (name, returns)
    select distinct j.queue, 1
      from unnest(:ids::uuid[]) as i(id)
     cross join lateral (select j.id, j.queue, j.state from tenure.jobs j where j.id = i.id limit 1) j
     where j.state = 'pending' and j.id not in (select c.id from completed c)
    on conflict (name) do update set returns = q.returns + 1),
finished as (
    insert into tenure.history (id, worker_id, started_at, finished_at, state, output, /* include: job_columns */)
    select id, r.worker_id, coalesce(r.at, started_at), ended_at, 'completed', nullif(:outputs::jsonb -> id::text, 'null'), /* include: job_columns */
      from completed c
      left join runs r using (id)),
recorded_incidents as (
    insert into tenure.incidents (job_id, at, what, attempt, fence, worker_id, started_at, by)
    select c.id, c.ended_at, 'completed', case when c.claim_id is not null then c.attempt end,
           case when c.claim_id is not null then c.fence end, r.worker_id, r.at, :by::text
      from completed c
      left join runs r using (id)),
ended as not materialized (
    select c.id, c.kind, c.queue, 'completed' as what, coalesce(r.at, c.started_at) - c.enqueued_at as waited, c.ended_at - r.at as ran,
           case when c.dependants then coalesce(c.chain_id, c.id) end as chain, 'completed' as ending
      from completed c
      left join runs r using (id)),
/* include: job_endings */
select i.id, c.id is not null as done, c.claim_id is not null as ran,
       i.id in (select a.id from awaited a) as watched, i.id in (select e.id from ended_chains e) as dependants, j.kind,
       null::text as undoing
  from unnest(:ids::uuid[]) as i(id)
  left join completed c on c.id = i.id
 cross join lateral (select j.kind from tenure.jobs j where j.id = i.id limit 1) j
