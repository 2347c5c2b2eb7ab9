-- find_failures: jobs whose last attempt failed since :since, at most :most of each: those that wait to be retried, dead letters, and jobs that
-- failed for good. The head of the error is enough to group them by. The start of a run is used as the time of its failure, which live jobs
-- do not have. Each part goes by one index and stops after :most rows, so the cost does not grow with jobs and history.
select f.id, f.kind, f.queue, f.state, f.attempt, f.crashes, f.at, f.error
  from ((select j.id, j.kind, j.queue, j.state, j.attempt, j.crashes::integer, coalesce(j.started_at, j.enqueued_at) as at, left(j.error, 600) as error
           from (select j.* from tenure.jobs j where j.position = 0 order by j.run_at limit :most::integer) j
          where j.state = 'retry')
        union all
        (select j.id, j.kind, j.queue, j.state, j.attempt, j.crashes::integer, coalesce(j.started_at, j.enqueued_at), left(j.error, 600)
           from (select j.* from tenure.jobs j where j.position = -1 order by j.kind desc, j.id desc limit :most::integer) j)
        union all
        (select h.id, h.kind, h.queue, h.state, h.attempt, h.crashes::integer, h.finished_at, left(h.error, 600)
           from (select h.* from tenure.history h
                  where h.state = 'failed' and h.state <> 'completed'
                  order by h.state desc, h.id desc limit :most::integer) h)) f
 where f.at >= :since::timestamptz
