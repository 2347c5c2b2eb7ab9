-- replay_jobs: dead_letter -> pending, at the end of their queues, the oldest first, with all attempts available again.
--   input, priority  replace those of the jobs, if not null
-- A dead letter with a key takes it again, and is skipped if another job holds the key now: there are never two live jobs for one key.
-- The locks assign the transaction its id before positions are taken: workers rely on that order. Only dead letters are locked: a claim
-- would skip a locked pending job, and its worker would not look there again for a long time. A job that leaves this state at the same
-- moment may still be locked: then the workers of its queue look again.
-- Returns one row per dead letter: its queue, whether it was moved, its kind, and the job that holds its key instead. If it was not
-- moved and there is no such job, another session has locked its row: call again.
with found as materialized (
    select j.tid, j.id, j.state, j.kind, j.queue, j.key, j.attempt, j.fence, j.input
      from unnest(:ids::uuid[]) as i(id)
     cross join lateral (
        select j.ctid as tid, j.id, j.state, j.kind, j.queue, j.key, j.attempt, j.fence, j.input
          from tenure.jobs j
         -- Prevents the use of the index of dead letters, which the planner believes to be short.
         where j.id = i.id and coalesce(j.state, '') = 'dead_letter'
         limit 1
           for no key update skip locked) j),
taken_keys as materialized (
    select k.id, k.existing_id
      from (select jsonb_agg(jsonb_build_object('id', f.id, 'kind', f.kind, 'key', f.key, 'key_for', 'live', 'input', f.input) order by f.id) as jobs
              from found f where f.key is not null) g
     cross join lateral jsonb_to_recordset(tenure.take_keys(g.jobs)) as k(id uuid, existing_id uuid)
     where g.jobs is not null),
placed as materialized (
    select f.*, nextval('tenure.job_position') as position
      from (select f.* from found f
             -- The state is known already; it is repeated so that the planner expects few rows.
             where f.state = 'dead_letter' and (f.key is null or f.id in (select k.id from taken_keys k where k.existing_id is null))
             order by f.id) f),
moved as (
    update tenure.jobs j
       set state = 'pending', position = p.position, run_at = null, attempt = 0, crashes = 0,
           input = coalesce(:input::jsonb, j.input), priority = coalesce(:priority::smallint, j.priority),
           limit_group = case when :input::jsonb is not null or j.limit_group is not null
                              then tenure.limit_group_of(j.kind, j.queue, coalesce(:input::jsonb, j.input)) end
      from placed p
     where j.ctid = p.tid and j.id = p.id
    returning j.id, p.attempt, p.fence),
announced_queues as (
    insert into tenure.queues as q (name, returns)
    select distinct j.queue, 1
      from unnest(:ids::uuid[]) as i(id)
     cross join lateral (select j.id, j.queue, j.state from tenure.jobs j where j.id = i.id limit 1) j
     where j.state = 'dead_letter' and j.id not in (select m.id from moved m)
       and j.id not in (select k.id from taken_keys k where k.existing_id is not null)
    on conflict (name) do update set returns = q.returns + 1),
recorded_incidents as (
    insert into tenure.incidents (job_id, what, attempt, fence, by)
    select m.id, 'replayed', m.attempt, m.fence, :by::text from moved m)
select j.id, j.queue, exists (select from moved m where m.id = j.id) as moved, j.kind,
       (select k.existing_id from taken_keys k where k.id = j.id) as holder
  from unnest(:ids::uuid[]) as i(id)
 cross join lateral (select j.id, j.kind, j.queue, j.state from tenure.jobs j where j.id = i.id limit 1) j
 where j.state = 'dead_letter'
