-- adopt_held: assigns the jobs that this worker runs to their current limit groups, so that they count under the current limits and not
-- under those at the time of their claim. A locked row is skipped: it is being settled, or changed by a later call.
--   only  null, or the ids to restrict it to; peek: changes nothing, and returns the ids as JSON
-- Returns the number of jobs changed, and with peek the ids.
with held as materialized (
    select j.tid, j.id, j.limit_group
      from tenure.claims c
     cross join lateral unnest(c.job_ids) as i(id)
     cross join lateral (
        select j.ctid as tid, j.id, tenure.limit_group_of(j.kind, j.queue, j.input) as limit_group
          from tenure.jobs j
         where j.id = i.id and j.claim_id = c.id and (:only::uuid[] is null or j.id = any (:only::uuid[]))
         limit 1
           for no key update skip locked) j
     where c.worker_id = :worker_id::uuid),
adopted as (
    update tenure.jobs j
       set limit_group = h.limit_group, held_group = h.limit_group
      from held h
     where j.ctid = h.tid and not :peek::boolean and (j.limit_group is distinct from h.limit_group or j.held_group is distinct from h.limit_group)
    returning j.id)
select (select count(*) from adopted) as changed, (select json_agg(h.id)::text from held h where :peek::boolean) as peeked
