-- resume_workflow: waiting -> pending for a workflow that is held. With :capability, the versions of workers that may run it change as well, also
-- of one that is pending or waiting. A pending one keeps its position, which workers of the new version have passed: the workers of its
-- queue are notified to look again below their cursors.
-- The lock assigns the transaction its id before the position is taken: workers rely on that order.
-- Returns the previous state of the job, whether it was resumed or changed, its queue, and whether it was held. If it was held and not
-- resumed, another session has locked the row: call again. No row: it is not live.
with found as materialized (
    select j.ctid as tid, j.id, j.state, coalesce(j.system ? 'held', false) as held, j.attempt, j.fence
      from tenure.jobs j
     where j.id = :id::uuid and j.state in ('waiting', 'pending') and (j.system ? 'held' or :capability::text is not null)
       for no key update skip locked),
placed as materialized (
    select f.*, case when f.held then nextval('tenure.job_position') end as position from found f),
moved as (
    update tenure.jobs j
       set state = case when p.held then 'pending' else j.state end, position = coalesce(p.position, j.position),
           run_at = case when p.held then null else j.run_at end, error = case when p.held then null else j.error end,
           system = case when p.held then nullif(j.system - 'held', '{}') else j.system end,
           capability = coalesce(:capability::text, j.capability)
      from placed p
     where j.ctid = p.tid
    returning j.id, j.queue, p.state as before),
announced_queues as (
    insert into tenure.queues as q (name, returns)
    select m.queue, 1 from moved m where m.before = 'pending'
    on conflict (name) do update set returns = q.returns + 1),
recorded_incidents as (
    insert into tenure.incidents (job_id, what, attempt, fence, by)
    select f.id, 'resumed', f.attempt, f.fence, :by::text from found f where f.id in (select m.id from moved m))
select j.state, exists (select from moved) as moved, j.queue, coalesce(j.system ? 'held', false) as held
  from tenure.jobs j
 where j.id = :id::uuid
