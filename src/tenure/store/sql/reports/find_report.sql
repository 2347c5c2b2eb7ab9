-- find_report: one job with everything that is stored about it, from one snapshot. No row: no such job exists.
--   :incidents, :lines  the maximum number of each; the last ones are returned
--   :children           the maximum number; one more is returned to show that there are more
-- The columns of find_job come first, then the clock, the process that holds or finished the job, and the lists as JSON.
-- Lists are read as a range of a single id, in the order of an index: with any statistics, every other plan would have to sort, and
-- costs more.
select a.id, a.kind, a.queue, a.state, a.priority, a.capability, a.attempt, a.max_attempts, a.crashes, a.fence, a.worker_id,
       a.enqueued_at, a.run_at, a.started_at, a.finished_at, a.error, a.input::text, a.output::text,
       a.timeout, a.key, a.parent_id, a.enqueued_by, a.auth::text, a.meta::text, a.system::text, a.limit_group,
       a.progress_percent, a.progress_message, a.failed_at, a.chain_id, a.next_id, a.expires_at, a.heartbeat_at,
       clock_timestamp() as at,
       (select coalesce(w.name, w.host || ':' || w.pid) from tenure.workers w where w.id = a.worker_id) as worker,
       (select json_build_object('percent', p.percent, 'message', p.message, 'updated_at', p.updated_at)::text from tenure.progress p where p.job_id = :id::uuid) as progress,
       (select json_agg(i order by i.at, i.fence)::text
          from (select i.at, i.what, i.attempt, i.fence, i.worker_id, i.started_at, i.next_at, i.by, i.error,
                       coalesce(i.worker, (select coalesce(w.name, w.host || ':' || w.pid) from tenure.workers w where w.id = i.worker_id)) as worker
                  from tenure.incidents i
                 where i.job_id >= :id::uuid and i.job_id <= :id::uuid
                 order by i.job_id desc, i.at desc
                 limit :incidents::integer) i) as incidents,
       (select json_agg(json_build_object('fence', l.fence, 'kept_at', l.at, 'line', l.line) order by l.fence, l.first_line, l.ordinal)::text
          from (select c.fence, c.first_line, c.at, e.line, e.ordinal
                  from (select l.fence, l.first_line, l.at, l.lines
                          from tenure.logs l
                         where l.job_id >= :id::uuid and l.job_id <= :id::uuid
                         order by l.job_id desc, l.fence desc, l.first_line desc
                         limit :lines::integer) c
                 cross join lateral jsonb_array_elements(c.lines) with ordinality as e(line, ordinal)
                 order by c.fence desc, c.first_line desc, e.ordinal desc
                 limit :lines::integer) l) as log,
       (select json_agg(json_build_object('id', c.id, 'kind', c.kind, 'state', c.state, 'queue', c.queue) order by c.id)::text
          from (select c.id, c.kind, c.state, c.queue
                  from ((select j.id, j.kind, j.state, j.queue
                           from tenure.jobs j
                          where j.parent_id >= :id::uuid and j.parent_id <= :id::uuid
                          order by j.parent_id
                          limit :children::integer + 1)
                        union all
                        (select h.id, h.kind, h.state, h.queue
                           from tenure.history h
                          where h.parent_id >= :id::uuid and h.parent_id <= :id::uuid
                          order by h.parent_id
                          limit :children::integer + 1)) c
                 order by c.id
                 limit :children::integer + 1) c) as children,
       (select json_agg(json_build_object(
                   'name', s.name, 'what', s.what, 'state', s.state, 'error', s.error, 'attempts', s.attempts, 'started_at', s.started_at,
                   'ended_at', s.ended_at, 'due_at', s.due_at) order by s.number)::text
          from (select s.* from tenure.steps s where s.job_id >= :id::uuid and s.job_id <= :id::uuid order by s.job_id limit :steps::integer) s) as steps
  from tenure.all_jobs a
 where a.id = :id::uuid
