-- find_stranded: kinds of pending jobs that no live worker can run, in queues that are not paused: queue, kind, capability; how many
-- there are and for how many seconds the oldest waits, at least :seconds; how many live workers serve the queue, and know the kind;
-- whether there may be more jobs than were counted.
-- Steps from queue to queue and priority to priority in the index, and reads the first 1000 jobs of each: jobs that are never claimed are
-- at the front. So its cost does not grow with the backlog.
with recursive live_workers as materialized (
    select w.queues, w.kinds, w.capabilities from tenure.workers w where w.died_at is null and w.expires_at > clock_timestamp()),
lanes(queue, priority) as (
    (select j.queue, j.priority from tenure.jobs j where j.position > 0 and j.limit_group is null and j.state = 'pending'
      order by j.queue, j.priority desc, j.position limit 1)
    union all
    select n.queue, n.priority
      from lanes l
     cross join lateral (
        (select j.queue, j.priority from tenure.jobs j
          where j.position > 0 and j.limit_group is null and j.state = 'pending' and j.queue = l.queue and j.priority < l.priority
          order by j.queue, j.priority desc, j.position limit 1)
        union all
        (select j.queue, j.priority from tenure.jobs j
          where j.position > 0 and j.limit_group is null and j.state = 'pending' and j.queue > l.queue
          order by j.queue, j.priority desc, j.position limit 1)
        limit 1) n),
limited_queues(queue) as (
    (select j.queue from tenure.jobs j where j.position > 0 and j.limit_group is not null and j.held_group is null order by j.queue limit 1)
    union all
    select (select j.queue from tenure.jobs j
             where j.position > 0 and j.limit_group is not null and j.held_group is null and j.queue > g.queue
             order by j.queue limit 1)
      from limited_queues g
     where g.queue is not null),
waiting as (
    select f.*, count(*) over (partition by l.queue, l.priority) >= 1000 as capped from lanes l cross join lateral (
        select j.queue, j.kind, j.capability, greatest(j.enqueued_at, j.run_at) as since
          from tenure.jobs j
         where j.position > 0 and j.limit_group is null and j.state = 'pending' and j.queue = l.queue and j.priority = l.priority
         order by j.position limit 1000) f
    union all
    select f.*, count(*) over (partition by g.queue) >= 1000 from limited_queues g cross join lateral (
        select j.queue, j.kind, j.capability, greatest(j.enqueued_at, j.run_at) as since
          from tenure.jobs j
         where j.position > 0 and j.limit_group is not null and j.held_group is null and j.queue = g.queue
         limit 1000) f),
waiting_kinds as (
    select w.queue, w.kind, w.capability, count(*) as jobs, bool_or(w.capped) as capped,
           extract(epoch from clock_timestamp() - min(w.since))::float8 as age
      from waiting w
      left join tenure.queues q on q.name = w.queue
     where q.paused_at is null
     group by w.queue, w.kind, w.capability)
select k.queue, k.kind, k.capability, k.jobs, k.age,
       (select count(*) from live_workers a where a.queues ? k.queue) as for_queue,
       (select count(*) from live_workers a where a.queues ? k.queue and a.kinds ? k.kind) as for_kind,
       k.capped
  from waiting_kinds k
 where k.age >= :seconds::float8 and exists (select from live_workers)
   and not exists (select from live_workers a
                    where a.queues ? k.queue and a.kinds ? k.kind and (k.capability is null or a.capabilities ? k.capability))
 order by k.age desc
 limit 20
