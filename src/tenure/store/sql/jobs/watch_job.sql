-- watch_job: somebody waits for this job, until so many seconds from now at most; its worker will say when it moves.
insert into tenure.watches as w (job_id, until)
values (:id::uuid, clock_timestamp() + make_interval(secs => :seconds::float8))
on conflict (job_id) do update set until = greatest(w.until, excluded.until)
