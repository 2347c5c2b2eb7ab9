-- measure_demand: for each pool, how many waiting jobs it could run, and for how many seconds the oldest of them has waited.
-- Steps from priority to priority in the index and reads the first :look jobs of each, so the cost does not grow with the backlog; a
-- larger backlog is counted too low. A paused queue counts as empty. Jobs that must run alone are not counted.
-- Of jobs under a limit, it counts at most as many as may run at a time. Pools without waiting jobs are left out.
with recursive pool_queues as materialized (
    select p.pool, q.name as queue, p.kinds, p.capabilities
      from json_to_recordset(:pools::json) as p(pool text, queues text[], kinds text[], capabilities text[])
     cross join lateral unnest(p.queues) as q(name)
      left join tenure.queues k on k.name = q.name
     where k.paused_at is null),
lanes(queue, priority) as (
    select q.queue, (select j.priority from tenure.jobs j where j.position > 0 and j.limit_group is null and /* include: is_pending */ and j.queue = q.queue
                      order by j.priority desc, j.position limit 1)
      from (select distinct p.queue from pool_queues p) q
    union all
    select l.queue, (select j.priority from tenure.jobs j
                      where j.position > 0 and j.limit_group is null and /* include: is_pending */ and j.queue = l.queue and j.priority < l.priority
                      order by j.priority desc, j.position limit 1)
      from lanes l
     where l.priority is not null),
limited as materialized (
    select r.concurrency, r.stem, case when r.key is null then r.stem || chr(11) else left(r.stem, -1) || '>' end as after
      from tenure.limit_rules r),
waiting as (
select p.pool, s.jobs, s.since
  from pool_queues p
  join lanes l on l.queue = p.queue and l.priority is not null
 cross join lateral (
    select count(*) as jobs, min(f.since) as since
      from (select j.kind, j.capability, j.crashes, greatest(j.enqueued_at, j.run_at) as since
              from tenure.jobs j
             where j.position > 0 and j.limit_group is null and /* include: is_pending */ and j.queue = l.queue and j.priority = l.priority
             order by j.position limit :look::integer) f
     where f.kind = any (p.kinds) and (f.capability is null or f.capability = any (p.capabilities)) and f.crashes < 2) s
union all
select p.pool, least(s.jobs, r.concurrency - h.held), s.since
  from pool_queues p
 cross join limited r
 cross join lateral (
    select count(*) as jobs, min(f.since) as since
      from (select j.kind, j.capability, j.crashes, greatest(j.enqueued_at, j.run_at) as since
              from tenure.jobs j
             where j.position > 0 and j.limit_group is not null and j.held_group is null and j.queue = p.queue and j.limit_group >= r.stem
               and j.limit_group < r.after
             limit :look::integer) f
     where f.kind = any (p.kinds) and (f.capability is null or f.capability = any (p.capabilities)) and f.crashes < 2) s
 cross join lateral (
    select count(*) as held from tenure.jobs j
     where j.held_group is not null and j.held_group >= r.stem and j.held_group < r.after
       and r.concurrency is not null) h
 where s.jobs > 0 and (r.concurrency is null or r.concurrency > h.held))
select w.pool, sum(w.jobs)::bigint as jobs,
       extract(epoch from coalesce(:now::timestamptz, clock_timestamp()) - min(w.since))::float8 as seconds
  from waiting w
 group by w.pool
having sum(w.jobs) > 0
