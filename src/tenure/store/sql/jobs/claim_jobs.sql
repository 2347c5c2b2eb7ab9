-- claim_jobs: pending -> running, at most :limit jobs, for a worker whose lease has not expired.
--   :lanes  where to search, in this order: priorities high..low of a queue, from position start. A lane is one known priority from the
--           worker's cursor, or a gap between known priorities; gaps start at 0.
--   :limits the version of the limits that the worker knows. If it is not the current one, nothing is claimed until the worker has
--           loaded the limits. Jobs in a limit group are claimed by claim_limited.
-- The marks `passing over` are for the variant that is run while PostgreSQL refuses to claim some of the jobs:
--   :refused  jobs to skip; :only, if not null, the jobs to restrict the claim to
--   :peek     claims nothing, and returns the jobs that would be claimed
-- The first row holds the reply: the `returns` counters of the queues, and what the worker needs to move its cursors. The other rows
-- are the claimed jobs.
-- The rows are locked by this same statement, so their ctids cannot change before they are updated. The update changes no column of an
-- index, so it stays on its page (HOT); the row of tenure.claims is how the jobs of a worker are found.
-- The share lock on the worker's row prevents the reaper from condemning the worker while it claims.
-- A worker that is draining claims nothing: all its queues count as paused.
with holder as materialized (
    select w.id, w.draining_at is null as takes
      from tenure.workers w
     where w.id = :worker_id::uuid and w.died_at is null and w.expires_at > coalesce(:now::timestamptz, clock_timestamp())
       for share),
lanes as materialized (
    select l.ordinal, l.queue, l.high, l.low, l.start
      from json_to_recordset(:lanes::json) as l(ordinal integer, queue text, high smallint, low smallint, start bigint)
      left join tenure.queues q on q.name = l.queue
     where q.paused_at is null and exists (select from holder h where h.takes)
       and :limits::bigint = (select c.version from tenure.limit_changes c where c.id)
     order by l.ordinal),
picked as materialized (
    select c.tid /* passing over: , c.job_id, c.kind, c.queue, c.priority, c.position */
      from lanes l
     cross join lateral (
        select j.ctid as tid /* passing over: , j.id as job_id, j.kind, j.queue, j.priority, j.position */
          from tenure.jobs j
         where j.position > 0 and j.limit_group is null and j.state = 'pending' and j.queue = l.queue
           and j.priority <= l.high and j.priority >= l.low and j.position >= l.start
           and j.kind = any (:kinds::text[])
           and (j.capability is null or j.capability = any (:capabilities::text[]))
           and (:which::text = 'all' or (j.crashes >= 2) = (:which::text = 'suspects'))
           and (j.expires_at is null or j.fence > 0 or j.expires_at > coalesce(:now::timestamptz, clock_timestamp()))
           /* passing over: and j.id not in (select unnest(:refused::uuid[])) */
           /* passing over: and (:only::uuid[] is null or j.id = any (:only::uuid[])) */
         order by j.priority desc, j.position
         limit :limit::integer
           for no key update skip locked) c
     limit :limit::integer),
claimed as (
    update tenure.jobs j
       set state = 'running', claim_id = :claim_id::uuid, fence = j.fence + 1, attempt = j.attempt + 1,
           lease_until = case when :leases::text <> '{}'
                              then coalesce(:now::timestamptz, clock_timestamp()) + make_interval(secs => (:leases::json ->> j.kind)::float8) end
     where j.ctid = any (array(select p.tid from picked p)) /* passing over: and not :peek::boolean */
    returning j.id, j.kind, j.queue, j.priority, j.position, j.attempt, j.max_attempts, j.crashes, j.fence, j.input::text as input,
              j.timeout, j.auth::text as auth, j.meta::text as meta, j.system::text as system, j.limit_group),
noted as (
    insert into tenure.claims (id, worker_id, at, job_ids)
    select :claim_id::uuid, :worker_id::uuid, coalesce(:now::timestamptz, clock_timestamp()), array_agg(c.id)
      from claimed c
    having count(*) > 0),
tallied as (
    insert into tenure.tallies (queue, kind, what, jobs)
    select c.queue, c.kind, 'started', count(*) from claimed c group by c.queue, c.kind)
select json_build_object(
       'holds', exists (select from holder),
       'returns', (select json_object_agg(q.name, q.returns) from tenure.queues q),
       'paused', case when exists (select from holder h where not h.takes)
                      then (select json_agg(distinct l.queue) from json_to_recordset(:lanes::json) as l(queue text))
                      else (select json_agg(q.name) from tenure.queues q where q.paused_at is not null) end,
       'picked', (select count(*) from picked),
       /* passing over: 'peeked', (select json_agg(json_build_object('job_id', p.job_id, 'kind', p.kind, 'queue', p.queue, 'priority', p.priority, 'position', p.position)) from picked p where :peek::boolean), */
       'limits', (select c.version from tenure.limit_changes c where c.id),
       'position', (select case when p.is_called then p.last_value else 0 end from tenure.job_position p),
       'xmin', pg_snapshot_xmin(pg_current_snapshot())::text::bigint,
       'xid', pg_current_xact_id()::text::bigint)::text as reply,
       null as id, null as kind, null as queue, null as priority, null as position, null as attempt, null as max_attempts,
       null as crashes, null as fence, null as input, null as timeout, null as auth, null as meta, null as system, null as limit_group
 union all
select null, c.id::text, c.kind, c.queue, c.priority, c.position, c.attempt, c.max_attempts, c.crashes, c.fence, c.input, c.timeout, c.auth,
       c.meta, c.system, c.limit_group
  from claimed c
