-- find_shown: the current state of these jobs, as find_jobs, for lists and viewers: an input or output of more than :most bytes, as it is
-- stored, is left out and null instead, so that large jobs do not make an answer large.
select a.id, a.kind, a.queue, a.state, a.priority, a.capability, a.attempt, a.max_attempts, a.crashes, a.fence, a.worker_id,
       a.enqueued_at, a.run_at, a.started_at, a.finished_at, a.error,
       case when pg_column_size(a.input) <= :most::integer then a.input::text end as input,
       case when pg_column_size(a.output) <= :most::integer then a.output::text end as output,
       a.timeout, a.key, a.parent_id, a.enqueued_by, a.auth::text, a.meta::text, a.system::text, a.limit_group,
       a.progress_percent, a.progress_message, a.failed_at,
       greatest(pg_column_size(a.input), pg_column_size(a.output)) > :most::integer as omitted
  from unnest(:ids::uuid[]) as i(id)
 cross join lateral (select a.* from tenure.all_jobs a where a.id = i.id limit 1) a
 order by a.id desc
