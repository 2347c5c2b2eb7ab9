-- reconcile_schedules: makes the schedules of :owner those that its code declares. New ones begin now; changed ones keep their pause and,
-- unless their times changed, their next time. Schedules that are no longer declared are retired, unless another living process of the
-- same owner still declares them. Retired schedules that are declared again are restored; after no more than :patience seconds (old code
-- was started among new) as if they had not been retired.
--   :kinds  all kinds of the app. A schedule of the same owner whose app had other kinds belongs to another app of the same name: it is
--           not changed.
-- An app that declares a name owns it from then on. One statement, so that two processes that start together get the same result.
-- If the times of a schedule change, they are computed again: of the planned times that have passed, only those of the last :grace
-- seconds still count.
-- Returns the names with what was done: created, changed, restored, retired, and taken with the previous owner; and foreign if it was not
-- changed because it belongs to another app of the same name.
with declared as materialized (
    select g.*
      from jsonb_to_recordset(:declared::jsonb) as g(name text, kind text, cron text, every float8, timezone text, input jsonb, queue text,
           priority smallint, capability text, max_attempts integer, timeout float8, overlap text, catch_up text,
           catch_up_limit integer, jitter float8, expires float8)),
-- Locked by every session in the order of their names, to avoid deadlocks.
existing as materialized (
    select s.name, s.owner, s.retired_at, tenure.same_app(s.app_kinds, :kinds::text[]) as ours
      from tenure.schedules s
     where s.name in (select g.name from declared g) or (s.owner = :owner::text and s.retired_at is null)
     order by s.name
       for update),
written as (
    insert into tenure.schedules as s (name, owner, kind, cron, every, timezone, input, queue, priority, capability, max_attempts,
           timeout, overlap, catch_up, catch_up_limit, jitter, expires, changed_by, app_kinds)
    select g.name, :owner::text, g.kind, g.cron, g.every, g.timezone, g.input, g.queue, g.priority, g.capability, g.max_attempts,
           g.timeout, g.overlap, g.catch_up, g.catch_up_limit, g.jitter, g.expires, :owner::text, :kinds::text[]
      from declared g
     where (select count(*) from existing) >= 0  -- all are locked and read before any is written
     order by g.name
    on conflict (name) do update
       set owner = excluded.owner, kind = excluded.kind, cron = excluded.cron, every = excluded.every, timezone = excluded.timezone,
           input = excluded.input, queue = excluded.queue, priority = excluded.priority, capability = excluded.capability,
           max_attempts = excluded.max_attempts, timeout = excluded.timeout, overlap = excluded.overlap,
           catch_up = excluded.catch_up, catch_up_limit = excluded.catch_up_limit, jitter = excluded.jitter, expires = excluded.expires,
           changed_at = clock_timestamp(), changed_by = excluded.changed_by, retired_at = null, version = gen_random_uuid(),
           app_kinds = excluded.app_kinds,
           since = case when s.retired_at < clock_timestamp() - make_interval(secs => :patience::float8) then clock_timestamp()
                        when (s.cron, s.every, s.timezone) is not distinct from (excluded.cron, excluded.every, excluded.timezone) then s.since
                        else greatest(s.since, clock_timestamp() - make_interval(secs => :grace::float8)) end,
           next_at = case when s.retired_at is null
                           and (s.cron, s.every, s.timezone) is not distinct from (excluded.cron, excluded.every, excluded.timezone)
                          then s.next_at end
     where s.retired_at is not null
        or (s.owner, s.kind, s.cron, s.every, s.timezone, s.input, s.queue, s.priority, s.capability, s.max_attempts, s.timeout,
            s.overlap, s.catch_up, s.catch_up_limit, s.jitter, s.expires)
           is distinct from
           (excluded.owner, excluded.kind, excluded.cron, excluded.every, excluded.timezone, excluded.input, excluded.queue,
            excluded.priority, excluded.capability, excluded.max_attempts, excluded.timeout,
            excluded.overlap, excluded.catch_up, excluded.catch_up_limit, excluded.jitter, excluded.expires)
    returning s.name),
retired as (
    update tenure.schedules s
       set retired_at = clock_timestamp(), next_at = null, version = gen_random_uuid()
      from existing m
     where s.name = m.name and m.owner = :owner::text and m.retired_at is null and m.name not in (select g.name from declared g)
       and m.ours and not exists (
            select from tenure.living_declarations d
             where d.supervisor_id <> :supervisor_id::uuid and d.owner = :owner::text and m.name = any (d.schedules))
    returning s.name)
select k.name,
       case when m.name is null then 'created'
            when m.retired_at is not null then 'restored'
            when m.owner is distinct from :owner::text then 'taken'
            else 'changed' end as what,
       m.owner as old_owner
  from written k
  left join existing m on m.name = k.name
union all
select g.name, 'retired', :owner::text from retired g
union all
select m.name, 'foreign', :owner::text
  from existing m
 where m.owner = :owner::text and m.retired_at is null and not m.ours and m.name not in (select g.name from declared g)
