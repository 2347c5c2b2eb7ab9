-- waiting_by_queue: how many jobs of each queue are pending, and since when the first of them waits; how many are scheduled, in retry, waiting,
-- blocked and dead letters. Each number is counted up to :most, so the cost does not grow with the backlog.
select c.queue, c.state, sum(c.jobs)::bigint as jobs, bool_or(c.jobs >= :most::integer) as capped, min(c.since) as oldest_at
  from (select p.queue, 'pending' as state, p.jobs, p.since from (/* include: pending_by_queue */) p
        union all
        select d.queue, d.state, count(*), null
          from (select j.queue, j.state from tenure.jobs j
                 where j.position = 0 order by j.run_at limit :most::integer) d
         group by d.queue, d.state
        union all
        select d.queue, 'dead_letter', count(*), null
          from (select j.queue from tenure.jobs j where j.position = -1 order by j.kind, j.id limit :most::integer) d
         group by d.queue
        union all
        select d.queue, d.state, count(*), null
          from (select j.queue, j.state from tenure.jobs j where j.position = -2 order by j.queue limit :most::integer) d
         group by d.queue, d.state) c
 group by c.queue, c.state
 order by c.queue, c.state
