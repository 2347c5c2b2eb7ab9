-- count_held: the living workers and how many jobs each holds.
select w.pid, (select count(*) from tenure.held_jobs h where h.worker_id = w.id) as jobs
  from tenure.workers w
 where w.died_at is null
 order by w.started_at
