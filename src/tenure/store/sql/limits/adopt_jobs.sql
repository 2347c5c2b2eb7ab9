-- adopt_jobs: assigns pending jobs of limited kinds (:kinds) or queues (:queues) that have no limit group to theirs, at most :limit.
-- They were enqueued before the limit existed, or without the function enqueue. No claim takes them before that.
--   :lanes  as in claim_jobs
--   :only   null, or the ids to restrict it to; :peek changes nothing, and returns the ids as JSON
-- Returns what the worker needs to move its cursors, the queue, priority and position of each job that was changed, and with peek the ids.
with lanes as materialized (
    select l.ordinal, l.queue, l.high, l.low, l.start
      from json_to_recordset(:lanes::json) as l(ordinal integer, queue text, high smallint, low smallint, start bigint)
     order by l.ordinal),
picked as materialized (
    select c.tid, c.id
      from lanes l
     cross join lateral (
        select j.ctid as tid, j.id
          from tenure.jobs j
         where j.position > 0 and j.limit_group is null and j.state = 'pending' and j.queue = l.queue
           and j.priority <= l.high and j.priority >= l.low and j.position >= l.start
           and (j.kind = any (:kinds::text[]) or j.queue = any (:queues::text[]))
           and (:only::uuid[] is null or j.id = any (:only::uuid[]))
         order by j.priority desc, j.position
         limit :limit::integer
           for no key update skip locked) c
     limit :limit::integer),
adopted as (
    update tenure.jobs j
       set limit_group = tenure.limit_group_of(j.kind, j.queue, j.input)
      from picked p
     where j.ctid = p.tid and not :peek::boolean
    returning j.queue, j.priority, j.position)
select json_build_object(
       'holds', true,
       'returns', (select json_object_agg(q.name, q.returns) from tenure.queues q),
       'paused', null,
       'picked', (select count(*) from picked),
       'limits', (select c.version from tenure.limit_changes c where c.id),
       'position', (select case when p.is_called then p.last_value else 0 end from tenure.job_position p),
       'xmin', pg_snapshot_xmin(pg_current_snapshot())::text::bigint,
       'xid', pg_current_xact_id()::text::bigint)::text as reply,
       (select json_agg(json_build_object('queue', a.queue, 'priority', a.priority, 'position', a.position))::text from adopted a) as jobs,
       (select json_agg(p.id)::text from picked p where :peek::boolean) as peeked
