-- job_endings: what has to learn that a run or a job has ended, inside of the statement that ends it. Every statement that deletes a live
-- job, or takes one from its run, includes this after a CTE
--   ended (id, kind, queue, what, waited, ran, chain, ending)
-- with one row per job. `what` is how it is counted, null if it is not; `waited` and `ran` are null if no run was measured. `chain` is the
-- chain that ends with this job, if other jobs wait for it (its column dependants), else null; `ending` is how it ends.
-- What is to happen at the end of a job is added here, once, and must cost nothing for jobs that it does not concern.
counted as (
    insert into tenure.tallies (queue, kind, what, jobs, waited, ran, waited_bucket, ran_bucket)
    select e.queue, e.kind, e.what, count(*), sum(e.waited), sum(e.ran),
           case when e.ran is not null then tenure.latency_bucket(e.waited) end,
           case when e.ran is not null then tenure.latency_bucket(e.ran) end
      from ended e
     where e.what is not null
     group by e.queue, e.kind, e.what, 7, 8),
-- Read by the resolver, which the caller notifies after the commit. A chain ends a second time when a dead letter was replayed.
ended_chains as (
    insert into tenure.chain_endings (chain_id, job_id, kind, state)
    select e.chain, e.id, e.kind, e.ending from ended e where e.chain is not null
    on conflict (chain_id) do update
       set job_id = excluded.job_id, kind = excluded.kind, state = excluded.state, ended_at = excluded.ended_at,
           output = null, error = null, resolved = false
    returning job_id as id),
-- One probe for the whole batch. The caller notifies the clients that wait for these jobs after the commit.
awaited as materialized (
    select w.job_id as id from tenure.watches w where w.job_id = any (array(select e.id from ended e)))
