-- count_states: how many jobs are in which state, of those made since the job with this id (ids rise with time).
select a.state, count(*) as jobs from tenure.all_jobs a where a.id >= :since::uuid group by a.state
