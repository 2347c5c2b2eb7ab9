-- return_jobs: running -> pending for jobs that a condemned worker still holds; dead_letter after :max_crashes crashes.
-- A crash does not use an attempt: the attempt is refunded and the crash counted. Jobs keep their position.
-- They are found by the worker's claims. A claim's row is deleted when it holds no job any more, and the worker's with its last claim. Two sessions may run this at once: a condemned worker can neither claim nor
-- renew.
--   only  null, or the ids to restrict it to; peek: changes no job, and returns the ids that it would requeue
-- Returns the number of jobs requeued and quarantined, whether there may be more, their queues, the jobs, and with peek the ids. The
-- caller announces the queues.
with condemned as materialized (
    select w.id, w.died_how, w.name, w.host, w.pid
      from tenure.workers w
     where w.died_at is not null and (:worker_id::uuid is null or w.id = :worker_id::uuid)
     order by w.died_at
     limit 50
       for update skip locked),
held as materialized (
    select j.id, j.tid, j.attempt, j.fence, r.at as started_at, d.id as worker_id, d.died_how, d.name, d.host, d.pid, c.crash,
           case when c.crash = 1
                then tenure.quarantine(j.crashes + 1, :max_crashes::integer, 'its worker died {n} times while running it') end as quarantine
      from condemned d
     cross join lateral (select case d.died_how when 'stopped' then 0 else 1 end as crash) c
     cross join lateral (select r.id, r.at, r.job_ids from tenure.claims r where r.worker_id = d.id offset 0) r
     cross join lateral unnest(r.job_ids) as i(id)
     cross join lateral (
        select j.id, j.ctid as tid, j.attempt, j.fence, j.crashes from tenure.jobs j
         where j.id = i.id and j.claim_id = r.id and (:only::uuid[] is null or j.id = any (:only::uuid[]))
         limit 1 for no key update skip locked) j
     limit :limit::integer),
released as (
    update tenure.jobs j
       set state = case when h.quarantine is null then 'pending' else 'dead_letter' end,
           error = coalesce(h.quarantine, j.error),
           crashes = j.crashes + h.crash,
           attempt = greatest(j.attempt - 1, 0),
           position = case when h.quarantine is null then j.position else -1 end,
           claim_id = null, held_group = null, lease_until = null, started_at = h.started_at
      from held h
     where j.ctid = h.tid and not :peek::boolean
    returning j.id, j.queue, j.kind, j.state, h.attempt, h.fence, h.worker_id, h.started_at, h.died_how, h.name, h.host, h.pid, j.error,
              j.crashes, j.chain_id, j.dependants),
recorded_incidents as (
    insert into tenure.incidents (job_id, what, attempt, fence, worker_id, worker, started_at, error)
    select r.id, case r.died_how when 'stopped' then 'requeued' when 'expired' then 'lease_lost' else 'crashed' end,
           r.attempt, r.fence, r.worker_id, coalesce(r.name, r.host || ':' || r.pid), r.started_at, case when r.state = 'dead_letter' then r.error end
      from released r),
ended as not materialized (
    select r.id, r.kind, r.queue, case when r.state = 'dead_letter' then r.state end as what,
           null::interval as waited, null::interval as ran,
           case when r.dependants and r.state = 'dead_letter' then coalesce(r.chain_id, r.id) end as chain, 'dead_letter' as ending
      from released r),
/* include: job_endings */,
announced_queues as (
    insert into tenure.queues as q (name, returns)
    select distinct served.queue, 1
      from (select r.queue from released r
            union
            -- A claim whose transaction was interrupted left its jobs pending below other workers' cursors.
            select jsonb_array_elements_text(w.queues) from condemned d join tenure.workers w on w.id = d.id where not :peek::boolean) served
    on conflict (name) do update set returns = q.returns + 1
    returning q.name),
removed_claims as (
    delete from tenure.claims r
     using condemned d
     -- The row stays while any job may still be held under it: one that another session has locked, and one that was changed
     -- between this statement's snapshot and its lock. The latter is in `held`, but the update by ctid did not find it.
     where r.worker_id = d.id and not :peek::boolean
       and not exists (
        select from unnest(r.job_ids) as i(id)
         cross join lateral (select j.id from tenure.jobs j where j.id = i.id and j.claim_id = r.id limit 1) j
         where j.id not in (select n.id from released n))
    returning r.id),
removed_workers as (
    delete from tenure.workers w
     using condemned d
     where w.id = d.id and not :peek::boolean
       and not exists (select from tenure.claims r where r.worker_id = d.id and r.id not in (select g.id from removed_claims g)))
select (select count(*) filter (where r.state = 'pending') from released r) as requeued,
       (select count(*) filter (where r.state = 'dead_letter') from released r) as quarantined,
       (select count(*) from held) >= :limit::integer or (select count(*) from held) > (select count(*) from released) as more,
       (select coalesce(array_agg(t.name), '{}') from announced_queues t) as queues,
       (select json_agg(json_build_object(
                   'job_id', r.id, 'kind', r.kind, 'queue', r.queue, 'worker_id', r.worker_id,
                   'worker', r.name, 'host', r.host, 'why', case r.died_how when 'expired' then 'lease_lost' else r.died_how end,
                   'quarantined', r.state = 'dead_letter', 'crashes', r.crashes, 'error', r.error,
                   'watched', r.id in (select a.id from awaited a),
                   'dependants', r.id in (select c.id from ended_chains c)))::text
          from released r) as jobs,
       (select json_agg(h.id)::text from held h where :peek::boolean) as peeked
