-- pending_by_queue: how many jobs of each queue are pending, counted up to :most, and since when the first of them waits. A queue may have
-- two rows: jobs in limit groups are in an index of their own.
-- Steps from queue to queue and from priority to priority in the indexes, as survey_queues does.
with recursive open_queues(name) as (
    select (select j.queue from tenure.jobs j where j.position > 0 and j.limit_group is null and /* include: is_pending */ order by j.queue limit 1)
    union all
    select (select j.queue from tenure.jobs j
             where j.position > 0 and j.limit_group is null and /* include: is_pending */ and j.queue > n.name order by j.queue limit 1)
      from open_queues n where n.name is not null),
limited_queues(name) as (
    select (select j.queue from tenure.jobs j where j.position > 0 and j.limit_group is not null and j.held_group is null order by j.queue limit 1)
    union all
    select (select j.queue from tenure.jobs j
             where j.position > 0 and j.limit_group is not null and j.held_group is null and j.queue > n.name order by j.queue limit 1)
      from limited_queues n where n.name is not null),
lanes(queue, priority, since) as (
    select n.name, f.priority, f.since
      from open_queues n
     cross join lateral (
        select j.priority, greatest(j.enqueued_at, j.run_at) as since
          from tenure.jobs j where j.position > 0 and j.limit_group is null and /* include: is_pending */ and j.queue = n.name
         order by j.priority desc, j.position limit 1) f
    union all
    select l.queue, f.priority, f.since
      from lanes l
     cross join lateral (
        select j.priority, greatest(j.enqueued_at, j.run_at) as since
          from tenure.jobs j
         where j.position > 0 and j.limit_group is null and /* include: is_pending */ and j.queue = l.queue and j.priority < l.priority
         order by j.priority desc, j.position limit 1) f)
select n.name as queue,
       (select count(*) from (select from tenure.jobs j
                               where j.position > 0 and j.limit_group is null and /* include: is_pending */ and j.queue = n.name
                               limit :most::integer) p) as jobs,
       (select min(l.since) from lanes l where l.queue = n.name) as since
  from open_queues n where n.name is not null
union all
select n.name, p.jobs, p.since
  from limited_queues n
 cross join lateral (
    select count(*) as jobs, min(p.since) as since
      from (select greatest(j.enqueued_at, j.run_at) as since from tenure.jobs j
             where j.position > 0 and j.limit_group is not null and j.held_group is null and j.queue = n.name
             limit :most::integer) p) p
 where n.name is not null
