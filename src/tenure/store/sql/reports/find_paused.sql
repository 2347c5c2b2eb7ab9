-- find_paused: the paused queues: for how many seconds, by whom and why, how many jobs wait in each, and whether there may be more jobs
-- than were counted.
select q.name, extract(epoch from clock_timestamp() - q.paused_at)::float8 as age, q.paused_by as by, q.pause_reason as reason,
       f.jobs + l.jobs as waiting, f.jobs >= 1000 or l.jobs >= 1000 as capped
  from tenure.queues q
 cross join lateral (
    select count(*) as jobs
      from (select from tenure.jobs j where j.position > 0 and j.limit_group is null and j.state = 'pending' and j.queue = q.name limit 1000) p) f
 cross join lateral (
    select count(*) as jobs
      from (select from tenure.jobs j where j.position > 0 and j.limit_group is not null and j.held_group is null and j.queue = q.name limit 1000) p) l
 where q.paused_at is not null
 order by q.name
