-- expire_jobs: running -> pending for jobs whose own lease (declared by their kind) has expired. Run by a duty: fenced by its term.
-- Counts as a crash.
--   only  null, or the ids to restrict it to; peek: changes nothing, and returns the ids that it would requeue
-- Returns the number of jobs requeued and quarantined, their queues, and the jobs (or ids) as JSON. The caller announces the queues, and
-- notifies the old runs that they have lost their jobs.
with leader as materialized (
    select 1 from tenure.leases l
     where l.name = :duty and l.holder = :holder::uuid and l.term = :term::bigint and l.expires_at > clock_timestamp()
       for key share),
expired as materialized (
    select j.ctid as tid, j.id, j.attempt, j.fence, j.claim_id,
           tenure.quarantine(j.crashes + 1, :max_crashes::integer, 'it let its lease run out {n} times') as quarantine
      from tenure.jobs j
     where j.lease_until <= coalesce(:now::timestamptz, now()) and exists (select from leader)
       and (:only::uuid[] is null or j.id = any (:only::uuid[]))
     order by j.lease_until
     limit :limit::integer
       for no key update skip locked),
runs as materialized (
    select c.id, c.worker_id, c.at, w.name, w.host, w.pid
      from tenure.claims c
      left join lateral (select w.name, w.host, w.pid from tenure.workers w where w.id = c.worker_id limit 1) w on true
     where c.id = any (array(select e.claim_id from expired e))),
released as (
    update tenure.jobs j
       set state = case when l.quarantine is null then 'pending' else 'dead_letter' end,
           error = coalesce(l.quarantine, j.error),
           crashes = j.crashes + 1, attempt = greatest(j.attempt - 1, 0),
           position = case when l.quarantine is null then j.position else -1 end,
           claim_id = null, held_group = null, lease_until = null, started_at = coalesce(r.at, j.started_at)
      from expired l
      left join runs r on r.id = l.claim_id
     where j.ctid = l.tid and not :peek::boolean
    returning j.id, j.queue, j.kind, j.state, l.attempt, l.fence, r.worker_id, r.at as started_at, r.name, r.host, r.pid, j.error, j.crashes,
              j.chain_id, j.dependants),
recorded_incidents as (
    insert into tenure.incidents (job_id, what, attempt, fence, worker_id, worker, started_at, error)
    select r.id, 'lease_lost', r.attempt, r.fence, r.worker_id, coalesce(r.name, r.host || ':' || r.pid), r.started_at, case when r.state = 'dead_letter' then r.error end
      from released r),
ended as not materialized (
    select r.id, r.kind, r.queue, case when r.state = 'dead_letter' then r.state end as what,
           null::interval as waited, null::interval as ran,
           case when r.dependants and r.state = 'dead_letter' then coalesce(r.chain_id, r.id) end as chain, 'dead_letter' as ending
      from released r),
/* include: job_endings */,
announced_queues as (
    insert into tenure.queues as q (name, returns)
    select distinct r.queue, 1 from released r
    on conflict (name) do update set returns = q.returns + 1
    returning q.name)
select (select count(*) filter (where r.state = 'pending') from released r) as requeued,
       (select count(*) filter (where r.state = 'dead_letter') from released r) as quarantined,
       (select coalesce(array_agg(t.name), '{}') from announced_queues t) as queues,
       (select json_agg(json_build_object(
                   'job_id', r.id, 'kind', r.kind, 'queue', r.queue, 'worker_id', r.worker_id,
                   'worker', r.name, 'host', r.host, 'why', 'expired',
                   'quarantined', r.state = 'dead_letter', 'crashes', r.crashes, 'error', r.error,
                   'watched', r.id in (select a.id from awaited a),
                   'dependants', r.id in (select c.id from ended_chains c)))::text
          from released r) as jobs,
       (select json_agg(l.id)::text from expired l where :peek::boolean) as peeked
