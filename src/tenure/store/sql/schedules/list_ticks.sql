-- list_ticks: what became of the planned times of a schedule, the newest first, at most :limit, those before :before if that is given.
select t.schedule, t.planned_at, t.until, t.times, t.outcome, t.job_id, t.recorded_at, t.by
  from tenure.ticks t
 where t.schedule = :name::text and t.planned_at < coalesce(:before::timestamptz, 'infinity')
 order by t.planned_at desc
 limit :limit::integer
