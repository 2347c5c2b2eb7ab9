-- waiting_by_queue: how many jobs of each queue are pending, and since when the first of them waits; how many are scheduled, in retry, waiting,
-- blocked and dead letters. Pending jobs are counted up to :most in each queue. The including statement has counted undated_counts in the
-- same way, and has read due_jobs and dead_jobs up to a bound for all queues together. So the cost does not grow with the backlog.
-- `capped`: the count of this queue stopped at :most.
select c.queue, c.state, sum(c.jobs)::bigint as jobs, bool_or(c.capped) as capped, min(c.since) as oldest_at
  from (select p.queue, 'pending' as state, p.jobs, p.jobs >= :most::integer as capped, p.since from (/* include: pending_by_queue */) p
        union all
        select d.queue, d.state, d.jobs, d.capped, null from undated_counts d
        union all
        select d.queue, d.state, count(*), false, null from due_jobs d group by d.queue, d.state
        union all
        select d.queue, 'dead_letter', count(*), false, null from dead_jobs d group by d.queue) c
 group by c.queue, c.state
 order by c.queue, c.state
