-- watch_jobs: viewers wait for these jobs, for at most :seconds from now; their workers notify us when they change.
insert into tenure.watches as w (job_id, until)
select i.id, clock_timestamp() + make_interval(secs => :seconds::float8) from unnest(:ids::uuid[]) as i(id) order by i.id
on conflict (job_id) do update set until = greatest(w.until, excluded.until)
