-- survey_fleet: queues, workers and leaders at one moment, each list as JSON: one statement, because every open dashboard needs it every
-- other second. Live jobs are counted up to a bound, and running ones by the claims that hold them, so the cost grows neither with the
-- backlog nor with history.
-- Jobs that wait for a time and dead letters have no index that begins with the queue: :most_in_all of each sort are read, for all queues
-- together. Where that bound was reached, any queue may have more of these states (`capped`), also one of which none was read.
with due_jobs as materialized (
    select j.queue, j.state from tenure.jobs j where j.position = 0 order by j.run_at limit :most_in_all::integer),
dead_jobs as materialized (
    select j.queue from tenure.jobs j where j.position = -1 order by j.kind, j.id limit :most_in_all::integer),
undated_counts as (/* include: undated_by_queue */)
select clock_timestamp() as at,
       (select json_agg(w)::text from (/* include: waiting_by_queue */) w) as waiting,
       (select json_agg(s.state)::text
          from (values ('scheduled', (select count(*) from due_jobs)), ('retry', (select count(*) from due_jobs)),
                       ('waiting', (select count(*) from due_jobs)), ('dead_letter', (select count(*) from dead_jobs))) as s(state, jobs)
         where s.jobs >= :most_in_all::integer) as capped,
       (select json_agg(r)::text
          from (select j.queue, count(*) as jobs, min(c.at) as oldest_at
                  from tenure.claims c
                 cross join lateral unnest(c.job_ids) as i(id)
                 cross join lateral (select j.queue from tenure.jobs j where j.id = i.id and j.claim_id = c.id limit 1) j
                 group by j.queue) r) as held,
       (select json_agg(q)::text from (select q.name, q.paused_at, q.paused_by, q.pause_reason from tenure.queues q) q) as queues,
       (select json_agg(t)::text from (/* include: counts_of_today */) t) as today,
       (select json_agg(w)::text from (/* include: all_workers */) w) as workers,
       (select json_agg(l)::text from (/* include: all_leaders */) l) as leaders
