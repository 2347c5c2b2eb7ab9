-- change_schedule: changes the definition of a schedule that was created by hand, if it is still the one of :changed_at. If its times
-- change, they are computed again: of the planned times that have passed, only those of the last :grace seconds still count.
-- Returns its name. No row: it was changed or deleted by another session, or code declares it now.
update tenure.schedules s
   set kind = g.kind, cron = g.cron, every = g.every, timezone = g.timezone, input = g.input, queue = g.queue, priority = g.priority,
       capability = g.capability, max_attempts = g.max_attempts, timeout = g.timeout, overlap = g.overlap, catch_up = g.catch_up,
       catch_up_limit = g.catch_up_limit, jitter = g.jitter, expires = g.expires,
       changed_at = clock_timestamp(), changed_by = :by::text, version = gen_random_uuid(),
       since = case when (s.cron, s.every, s.timezone) is not distinct from (g.cron, g.every, g.timezone) then s.since
                    else greatest(s.since, clock_timestamp() - make_interval(secs => :grace::float8)) end,
       next_at = case when (s.cron, s.every, s.timezone) is not distinct from (g.cron, g.every, g.timezone) then s.next_at end
  from jsonb_to_record(:definition::jsonb) as g(name text, kind text, cron text, every float8, timezone text, input jsonb, queue text,
       priority smallint, capability text, max_attempts integer, timeout float8, overlap text, catch_up text,
       catch_up_limit integer, jitter float8, expires float8)
 where s.name = g.name and s.changed_at = :changed_at::timestamptz and s.owner is null
returning s.name
