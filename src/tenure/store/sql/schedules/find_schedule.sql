-- find_schedule: the current state of one schedule, and the clock.
select s.name, s.owner, s.kind, s.cron, s.every, s.timezone, s.input::text, s.queue, s.priority, s.capability, s.max_attempts, s.timeout,
       s.overlap, s.catch_up, s.catch_up_limit, s.jitter, s.expires, s.created_at, s.changed_at, s.changed_by,
       s.paused_at, s.paused_by, s.pause_reason, s.retired_at, s.since, s.next_at, s.last_at, clock_timestamp() as asked_at
  from tenure.schedules s
 where s.name = :name::text
