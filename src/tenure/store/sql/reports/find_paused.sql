-- find_paused: paused queues, for how many seconds, by whom, and how many jobs wait in each, counted to 1000.
select q.name, extract(epoch from clock_timestamp() - q.paused_at)::float8, q.paused_by,
       (select count(*) from (select from tenure.jobs j where j.state = 'pending' and j.gate is null and j.queue = q.name limit 1000) p)
     + (select count(*) from (select from tenure.jobs j where j.state = 'pending' and j.gate is not null and j.queue = q.name limit 1000) p)
  from tenure.queues q
 where q.paused_at is not null
 order by q.name
