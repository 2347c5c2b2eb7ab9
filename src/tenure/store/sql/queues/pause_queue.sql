-- pause_queue: from now on no job of this queue is claimed; running jobs continue. If it is paused already, it keeps its first time.
-- Returns whether it was paused by this statement: of several at once, only one pauses it.
with given as materialized (
    select clock_timestamp() as at)
insert into tenure.queues as q (name, paused_at, paused_by, pause_reason)
select :queue::text, g.at, :by::text, :reason::text from given g
on conflict (name) do update
   set paused_at = coalesce(q.paused_at, excluded.paused_at), paused_by = excluded.paused_by, pause_reason = excluded.pause_reason
returning q.paused_at = (select g.at from given g) as changed
