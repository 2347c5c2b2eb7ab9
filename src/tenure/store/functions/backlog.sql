-- backlog: how many jobs need a worker now, as one number, at most 10000. For autoscalers (KEDA or your own).
--   queue    count this queue only; otherwise all queues. A paused queue counts as empty.
--   running  also count running jobs, so that machines are not removed while they work.
-- Counts pending jobs, and jobs that are due but not yet promoted: without any worker, no process promotes them. Of jobs under a
-- limit, it counts at most as many as may run at a time.
-- Reads indexes only, and at most 10000 jobs of each sort and queue, so its cost does not grow with the backlog, nor with the jobs of other
-- queues or of later times.
create or replace function tenure.backlog(queue text default null, running boolean default false) returns bigint
language sql stable security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_sort = off
set jit = off
as $$
    with recursive open_queues(name) as (
        select coalesce(backlog.queue, (
            select j.queue from tenure.jobs j where j.position > 0 and j.limit_group is null and j.state = 'pending' order by j.queue limit 1))
        union all
        select (select j.queue from tenure.jobs j
                 where j.position > 0 and j.limit_group is null and j.state = 'pending' and j.queue > n.name
                 order by j.queue limit 1)
          from open_queues n
         where n.name is not null and backlog.queue is null),
    limited_queues(name) as (
        select coalesce(backlog.queue, (
            select j.queue from tenure.jobs j where j.position > 0 and j.limit_group is not null and j.held_group is null order by j.queue limit 1))
        union all
        select (select j.queue from tenure.jobs j
                 where j.position > 0 and j.limit_group is not null and j.held_group is null and j.queue > n.name
                 order by j.queue limit 1)
          from limited_queues n
         where n.name is not null and backlog.queue is null),
    dated_queues(name) as (
        select coalesce(backlog.queue, (
            select j.queue from tenure.jobs j where j.position = 0 and j.queue > '' order by j.queue limit 1))
        union all
        select (select j.queue from tenure.jobs j where j.position = 0 and j.queue > n.name order by j.queue limit 1)
          from dated_queues n
         where n.name is not null and backlog.queue is null),
    active_dated_queues as (
        select n.name from dated_queues n left join tenure.queues q on q.name = n.name where n.name is not null and q.paused_at is null),
    active_queues as (
        select n.name from open_queues n left join tenure.queues q on q.name = n.name where n.name is not null and q.paused_at is null),
    active_limited_queues as (
        select n.name from limited_queues n left join tenure.queues q on q.name = n.name where n.name is not null and q.paused_at is null)
    select least(10000,
        (select count(*)
           from (select from active_queues a
                  cross join lateral (
                    select from tenure.jobs j where j.position > 0 and j.limit_group is null and j.state = 'pending' and j.queue = a.name limit 10000) p
                  limit 10000) p)
      + (select coalesce(sum(greatest(0, least(w.waiting, r.concurrency - h.held))), 0)
           from (select r.name, r.concurrency, r.stem, case when r.key is null then r.stem || chr(11) else left(r.stem, -1) || '>' end as after
                   from tenure.limit_rules r) r
          cross join lateral (
            select count(*) as waiting
              from (select from active_limited_queues a
                     cross join lateral (
                        select from tenure.jobs j
                         where j.position > 0 and j.limit_group is not null and j.held_group is null and j.queue = a.name and j.limit_group >= r.stem
                           and j.limit_group < r.after
                         limit 10000) p
                     limit 10000) p) w
          cross join lateral (
            select count(*) as held from tenure.jobs j
             where j.held_group is not null and j.held_group >= r.stem and j.held_group < r.after
               and r.concurrency is not null) h
          where w.waiting > 0)
      + (select count(*)
           from (select from active_dated_queues a
                  cross join lateral (
                    select from tenure.jobs j
                     where j.position = 0 and j.queue >= a.name and j.queue <= a.name and j.run_at <= statement_timestamp()
                     order by j.queue, j.run_at -- this order only jobs_due_queue has: by jobs_due, all queues would be read
                     limit 10000) d
                  limit 10000) d)
      + (select count(*)
           from (select from tenure.held_jobs h
                  where backlog.running and (backlog.queue is null or h.queue = backlog.queue)
                  limit 10000) h))
$$;
