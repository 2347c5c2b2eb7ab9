-- resume_queue: jobs of the queue are claimed again, and its workers search from the start. Returns its name if it was paused.
update tenure.queues q
   set paused_at = null, paused_by = null, pause_reason = null, returns = q.returns + 1
 where q.name = :queue::text and q.paused_at is not null
returning q.name
