-- adopt_held: jobs that this worker runs count under the limits of now, whatever held when it claimed them.
-- Returns how many were changed. A row that is locked is being settled, or asked for again.
with held as materialized (
    select j.ctid as place, tenure.gate_of(j.kind, j.queue, j.input) as gate
      from tenure.jobs j
     where j.worker_id = :worker_id::uuid
       for no key update skip locked),
adopted as (
    update tenure.jobs j
       set gate = h.gate
      from held h
     where j.ctid = h.place and j.gate is distinct from h.gate
    returning j.id)
select count(*) from adopted
