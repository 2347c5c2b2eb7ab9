-- pause_queue: no worker claims from it until it is resumed; what runs goes on.
insert into tenure.queues as q (name, paused_at, paused_by, pause_reason)
values (:name, clock_timestamp(), :by, :reason)
on conflict (name) do update
   set paused_at = coalesce(q.paused_at, excluded.paused_at), paused_by = excluded.paused_by, pause_reason = excluded.pause_reason
