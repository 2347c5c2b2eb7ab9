-- count_held_by_unknown: the number of jobs held by a worker without a row, counted up to 1000.
select count(*)
  from (select from tenure.held_jobs h
         where not exists (select from tenure.workers w where w.id = h.worker_id)
         limit 1000) u
