-- list_ticks: the ticks of a schedule, newest first, at most :limit; with :before, only earlier ones. Also the current states of their
-- jobs, by their ids; null for a job that is no longer stored.
select t.schedule, t.planned_at, t.until, t.times, t.outcome, t.job_id, t.recorded_at, t.by,
       coalesce((select j.state from tenure.jobs j where j.id = t.job_id),
                (select h.state from tenure.history h where h.id = t.job_id limit 1)) as job_state
  from tenure.ticks t
 where t.schedule = :name::text and t.planned_at < coalesce(:before::timestamptz, 'infinity')
 order by t.planned_at desc
 limit :limit::integer
