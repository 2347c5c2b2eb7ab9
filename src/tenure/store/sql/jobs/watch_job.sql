-- watch_job: a client waits for this job, for at most :seconds from now; the job's worker notifies it when the state changes.
insert into tenure.watches as w (job_id, until)
values (:id::uuid, clock_timestamp() + make_interval(secs => :seconds::float8))
on conflict (job_id) do update set until = greatest(w.until, excluded.until)
