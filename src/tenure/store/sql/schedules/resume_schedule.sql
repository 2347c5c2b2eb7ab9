-- resume_schedule: times are planned again from now on; times that passed while it was paused are not run. Returns whether it was paused.
-- No row: no such schedule exists.
with found as materialized (
    select s.name, s.paused_at from tenure.schedules s where s.name = :name::text for update),
resumed as (
    update tenure.schedules s
       set paused_at = null, paused_by = null, pause_reason = null,
           since = greatest(s.since, clock_timestamp()), next_at = null, version = gen_random_uuid()
      from found f
     where s.name = f.name and f.paused_at is not null
    returning s.name)
select exists (select from resumed) from found
