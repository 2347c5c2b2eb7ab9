-- list_ticks: the ticks of a schedule, newest first, at most :limit; with :before, only earlier ones.
select t.schedule, t.planned_at, t.until, t.times, t.outcome, t.job_id, t.recorded_at, t.by
  from tenure.ticks t
 where t.schedule = :name::text and t.planned_at < coalesce(:before::timestamptz, 'infinity')
 order by t.planned_at desc
 limit :limit::integer
