-- replay_jobs: dead_letter -> pending, at the end of their queues, the oldest first, with all attempts before them again.
--   input, priority  instead of their own, where given
-- The locks give the transaction its number before positions are taken: workers rely on that order.
-- Returns each that was a dead letter: its queue, and whether it was moved (if not, somebody else holds its row: ask again).
with found as materialized (
    select j.place, j.id, j.state, j.attempt, j.fence
      from unnest(:ids::uuid[]) as i(id)
     cross join lateral (
        select j.ctid as place, j.id, j.state, j.attempt, j.fence
          from tenure.jobs j
         where j.id = i.id
         limit 1
           for no key update skip locked) j),
placed as materialized (
    select f.*, nextval('tenure.job_position') as position
      from (select f.* from found f where f.state = 'dead_letter' order by f.id) f),
moved as (
    update tenure.jobs j
       set state = 'pending', position = p.position, run_at = null, attempt = 0, crashes = 0,
           input = coalesce(:input::jsonb, j.input), priority = coalesce(:priority::smallint, j.priority),
           gate = case when :input::jsonb is null then j.gate else tenure.gate_of(j.kind, j.queue, :input::jsonb) end
      from placed p
     where j.ctid = p.place and j.id = p.id
    returning j.id, p.attempt, p.fence),
noted as (
    insert into tenure.incidents (job_id, what, attempt, fence, by)
    select m.id, 'replayed', m.attempt, m.fence, :by::text from moved m)
select j.id, j.queue, exists (select from moved m where m.id = j.id)
  from unnest(:ids::uuid[]) as i(id)
 cross join lateral (select j.id, j.queue, j.state from tenure.jobs j where j.id = i.id limit 1) j
 where j.state = 'dead_letter'
