-- create_schedule: creates a schedule by hand. Returns its name. No row: the name is taken.
insert into tenure.schedules (name, kind, cron, every, timezone, input, queue, priority, capability, max_attempts, timeout,
       overlap, catch_up, catch_up_limit, jitter, expires, changed_by, paused_at, paused_by)
select g.name, g.kind, g.cron, g.every, g.timezone, g.input, g.queue, g.priority, g.capability, g.max_attempts, g.timeout,
       g.overlap, g.catch_up, g.catch_up_limit, g.jitter, g.expires, :by::text,
       case when :paused::boolean then clock_timestamp() end, case when :paused::boolean then :by::text end
  from jsonb_to_record(:definition::jsonb) as g(name text, kind text, cron text, every float8, timezone text, input jsonb, queue text,
       priority smallint, capability text, max_attempts integer, timeout float8, overlap text, catch_up text,
       catch_up_limit integer, jitter float8, expires float8)
on conflict (name) do nothing
returning name
