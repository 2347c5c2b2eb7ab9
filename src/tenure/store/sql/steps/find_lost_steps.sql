-- find_lost_steps: of runs that have stored steps, those of which one is gone (see record_steps).
--   stored  JSON: the id of the job, and the name of a step whose storage was confirmed to its run
select distinct v.id::text
  from jsonb_to_recordset(:stored::jsonb) as v(id uuid, name text)
 where (select s.number from tenure.steps s where s.job_id = v.id and s.name = v.name limit 1) is null
