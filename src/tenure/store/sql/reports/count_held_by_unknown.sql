-- count_held_by_unknown: the number of jobs held by a worker without a row, counted up to 1000.
select count(*)
  from (select from tenure.jobs j
         where j.worker_id is not null and not exists (select from tenure.workers w where w.id = j.worker_id)
         limit 1000) u
