-- drain_workers: the living workers of the supervisors that these workers belong to claim no more jobs, or claim again. A claim that is
-- under way holds their rows, so when this has committed, none of them starts another job.
-- Returns the workers, also those for which nothing has changed.
with meant as materialized (
    select w.id
      from tenure.workers w
     where w.died_at is null
       and w.supervisor_id in (select o.supervisor_id from tenure.workers o where o.id = any (:ids::uuid[]) and o.died_at is null)
     order by w.id
       for no key update)
update tenure.workers w
   set draining_at = case when :draining::boolean then coalesce(w.draining_at, clock_timestamp()) end
 where w.id in (select m.id from meant m)
returning w.id::text
