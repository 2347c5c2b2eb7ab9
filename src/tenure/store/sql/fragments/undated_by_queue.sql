-- undated_by_queue: how many jobs of each queue are blocked, or wait for an event without a time limit, both together counted up to :most. A
-- queue that has more is capped in both states, also in one of which none was counted.
with recursive undated_queues(name) as (
    select (select j.queue from tenure.jobs j where j.position = -2 order by j.queue limit 1)
    union all
    select (select j.queue from tenure.jobs j where j.position = -2 and j.queue > n.name order by j.queue limit 1)
      from undated_queues n where n.name is not null)
select n.name as queue, s.state, s.jobs, c.jobs >= :most::integer as capped
  from undated_queues n
 cross join lateral (
    select count(*) as jobs, count(*) filter (where u.state = 'blocked') as blocked, count(*) filter (where u.state = 'waiting') as waiting
      from (select j.state from tenure.jobs j where j.position = -2 and j.queue = n.name limit :most::integer) u) c
 cross join lateral (values ('blocked', c.blocked), ('waiting', c.waiting)) as s(state, jobs)
 where n.name is not null and (s.jobs > 0 or c.jobs >= :most::integer)
