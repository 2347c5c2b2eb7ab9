-- job_endings: what has to learn that a run or a job has ended, inside of the statement that ends it. Every statement that deletes a live
-- job, or takes one from its run, includes this after a CTE
--   ended (id, kind, queue, what, waited, ran)
-- with one row per job. `what` is how it is counted, null if it is not; `waited` and `ran` are null if no run was measured.
-- What is to happen at the end of a job is added here, once, and must cost nothing for jobs that it does not concern.
counted as (
    insert into tenure.tallies (queue, kind, what, jobs, waited, ran, waited_bucket, ran_bucket)
    select e.queue, e.kind, e.what, count(*), sum(e.waited), sum(e.ran),
           case when e.ran is not null then tenure.latency_bucket(e.waited) end,
           case when e.ran is not null then tenure.latency_bucket(e.ran) end
      from ended e
     where e.what is not null
     group by e.queue, e.kind, e.what, 7, 8),
-- One probe for the whole batch. The caller notifies the clients that wait for these jobs after the commit.
awaited as materialized (
    select w.job_id as id from tenure.watches w where w.job_id = any (array(select e.id from ended e)))
