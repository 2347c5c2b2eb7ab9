-- retry_job: retry, scheduled, dead_letter -> pending now, at the end of its queue. A dead letter gets all its attempts again, and takes
-- its key again; it is skipped if another job holds the key now.
-- The lock assigns the transaction its id before the position is taken: workers rely on that order. A pending job is not locked: a claim
-- would skip it, and its worker would not look there again for a long time. A job that becomes pending at the same moment may still be
-- locked: then the workers of its queue look again.
-- Returns the previous state of the job, whether it was moved, its queue and kind, and the job that holds its key. If it was in one of
-- the three states, was not moved, and the key is not the reason, another session has locked the row: call again. No row: it is not live.
with found as materialized (
    select j.ctid as tid, j.id, j.state, j.kind, j.queue, j.key, j.attempt, j.fence, j.input
      from tenure.jobs j
     where j.id = :id::uuid and j.state in ('retry', 'scheduled', 'dead_letter')
       for no key update skip locked),
taken_keys as materialized (
    select k.existing_id
      from (select jsonb_agg(jsonb_build_object('id', f.id, 'kind', f.kind, 'key', f.key, 'key_for', 'live', 'input', f.input)) as jobs
              from found f where f.key is not null and f.state = 'dead_letter') g
     cross join lateral jsonb_to_recordset(tenure.take_keys(g.jobs)) as k(id uuid, existing_id uuid)
     where g.jobs is not null and k.existing_id is not null),
placed as materialized (
    select f.*, nextval('tenure.job_position') as position
      from found f
     where not exists (select from taken_keys)),
moved as (
    update tenure.jobs j
       set state = 'pending', position = p.position, run_at = null,
           attempt = case when p.state = 'dead_letter' then 0 else j.attempt end,
           crashes = case when p.state = 'dead_letter' then 0 else j.crashes end,
           limit_group = case when j.limit_group is not null then tenure.limit_group_of(j.kind, j.queue, j.input) end
      from placed p
     where j.ctid = p.tid and j.id = p.id
    returning j.id, p.attempt, p.fence),
announced_queues as (
    insert into tenure.queues as q (name, returns)
    select j.queue, 1
      from tenure.jobs j
     where j.id = :id::uuid and j.state in ('retry', 'scheduled', 'dead_letter')
       and not exists (select from moved) and not exists (select from taken_keys)
    on conflict (name) do update set returns = q.returns + 1),
recorded_incidents as (
    insert into tenure.incidents (job_id, what, attempt, fence, by)
    select m.id, 'retried', m.attempt, m.fence, :by::text from moved m)
select j.state, exists (select from moved) as moved, j.queue, j.kind, (select k.existing_id from taken_keys k limit 1) as holder
  from tenure.jobs j
 where j.id = :id::uuid
