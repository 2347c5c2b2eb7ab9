-- watch_jobs: viewers wait for these jobs, for at most :seconds from now; their workers notify us when they change. Returns the ids of
-- those that are live. For any other id there is nothing to notify of: a viewer may name ids that do not exist, as many as it likes.
insert into tenure.watches as w (job_id, until)
select i.id, clock_timestamp() + make_interval(secs => :seconds::float8)
  from unnest(:ids::uuid[]) as i(id)
 where exists (select from tenure.jobs j where j.id = i.id)
 order by i.id
on conflict (job_id) do update set until = greatest(w.until, excluded.until)
returning w.job_id
