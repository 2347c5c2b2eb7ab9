-- adopt_held: jobs that this worker runs count under the limits of now, whatever held when it claimed them.
-- A row that is locked is being settled, or asked for again.
--   only  null, or the ids to which it is restricted; peek: changes nothing, and returns the ids as JSON
-- Returns how many were changed, and the ids that were asked for.
with held as materialized (
    select j.ctid as place, j.id, tenure.gate_of(j.kind, j.queue, j.input) as gate
      from tenure.jobs j
     where j.worker_id = :worker_id::uuid and (:only::uuid[] is null or j.id = any (:only::uuid[]))
       for no key update skip locked),
adopted as (
    update tenure.jobs j
       set gate = h.gate
      from held h
     where j.ctid = h.place and not :peek::boolean and j.gate is distinct from h.gate
    returning j.id)
select (select count(*) from adopted) as changed, (select json_agg(h.id)::text from held h where :peek::boolean) as peeked
