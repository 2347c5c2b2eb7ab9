-- retry_job: retry, scheduled, dead_letter -> pending at once, at the end of its queue. A dead letter begins anew.
-- The lock gives the transaction its number before the position is taken: workers rely on that order.
-- Returns the state in which the job was, whether it was moved, and its queue. Not moved from one of the three states: somebody
-- else holds the row at this moment, ask again. No row: it is not live.
with found as materialized (
    select j.ctid as place, j.id, j.state, j.attempt, j.fence
      from tenure.jobs j
     where j.id = :id::uuid
       for no key update skip locked),
placed as materialized (
    select f.*, nextval('tenure.job_position') as position
      from found f
     where f.state in ('retry', 'scheduled', 'dead_letter')),
moved as (
    update tenure.jobs j
       set state = 'pending', position = p.position, run_at = null,
           attempt = case when p.state = 'dead_letter' then 0 else j.attempt end,
           crashes = case when p.state = 'dead_letter' then 0 else j.crashes end
      from placed p
     where j.ctid = p.place and j.id = p.id
    returning j.id, p.attempt, p.fence),
noted as (
    insert into tenure.incidents (job_id, what, attempt, fence, by)
    select m.id, 'retried', m.attempt, m.fence, :by::text from moved m)
select j.state, exists (select from moved), j.queue from tenure.jobs j where j.id = :id::uuid
