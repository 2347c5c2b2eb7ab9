-- pause_queue: from now on no job of this queue is claimed; running jobs continue. If it is paused already, it keeps its first time.
insert into tenure.queues as q (name, paused_at, paused_by, pause_reason)
values (:queue::text, clock_timestamp(), :by::text, :reason::text)
on conflict (name) do update
   set paused_at = coalesce(q.paused_at, excluded.paused_at), paused_by = excluded.paused_by, pause_reason = excluded.pause_reason
