-- count_listed: how many of these jobs, which are live, each queue has.
select j.queue, count(*) as jobs
  from unnest(:ids::uuid[]) as i(id)
 cross join lateral (select j.queue from tenure.jobs j where j.id = i.id offset 0) j
 group by j.queue
