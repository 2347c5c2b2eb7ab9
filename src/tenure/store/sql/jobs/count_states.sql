-- count_states: counts jobs by state, from the job with id :since on (ids grow with time).
select a.state, count(*) as jobs from tenure.all_jobs a where a.id >= :since::uuid group by a.state
