-- How much work waits, as one number: for whoever starts and ends machines (KEDA, an autoscaler of your own).

-- backlog: jobs that want a worker now, at most 10000 of them.
--   queue    of this queue only; else of all. A paused queue wants nothing.
--   running  also counts the jobs that are being run, so that machines are not taken away while they work.
-- Counts what is pending, and what is due and not yet promoted: when there is no worker at all, nobody promotes it.
-- Goes by indexes and looks at no more than 10000 jobs of each sort, so its cost does not grow with the backlog.
create function tenure.backlog(queue text default null, running boolean default false) returns bigint
language sql stable security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
    with recursive named(name) as (
        select coalesce(backlog.queue, (select j.queue from tenure.jobs j where j.state = 'pending' order by j.queue limit 1))
        union all
        select (select j.queue from tenure.jobs j where j.state = 'pending' and j.queue > n.name order by j.queue limit 1)
          from named n
         where n.name is not null and backlog.queue is null),
    awake as (
        select n.name from named n left join tenure.queues q on q.name = n.name where n.name is not null and q.paused_at is null)
    select least(10000,
        (select count(*)
           from (select from awake a
                  cross join lateral (select from tenure.jobs j where j.state = 'pending' and j.queue = a.name limit 10000) p
                  limit 10000) p)
      + (select count(*)
           from (select j.queue from tenure.jobs j
                  where j.state in ('scheduled', 'retry') and j.run_at <= clock_timestamp()
                  order by j.run_at limit 10000) d
           left join tenure.queues q on q.name = d.queue
          where (backlog.queue is null or d.queue = backlog.queue) and q.paused_at is null)
      + (select count(*)
           from (select j.queue from tenure.jobs j where j.worker_id is not null and backlog.running limit 10000) h
          where backlog.queue is null or h.queue = backlog.queue))
$$;
