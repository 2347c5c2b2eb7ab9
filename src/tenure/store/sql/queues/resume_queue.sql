-- resume_queue: claims go on.
update tenure.queues q
   set paused_at = null, paused_by = null, pause_reason = null
 where q.name = :name
