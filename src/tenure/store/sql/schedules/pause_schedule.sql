-- pause_schedule: from now on no time is planned. If it is paused already, it keeps its first time. Returns its name.
update tenure.schedules s
   set paused_at = coalesce(s.paused_at, clock_timestamp()), paused_by = :by::text, pause_reason = :reason::text,
       next_at = null, version = gen_random_uuid()
 where s.name = :name::text
returning s.name
