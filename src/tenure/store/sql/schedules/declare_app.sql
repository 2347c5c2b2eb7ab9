-- declare_app: stores which jobs and schedules the code of a supervisor has, so that no other process retires its schedules while it is
-- alive. The kinds are also stored with its schedules: they distinguish two apps of the same name. That does not change a schedule, so
-- its version stays. Also removes declarations of supervisors that have been gone for a day.
-- Returns nothing.
with removed as (
    delete from tenure.declarations d
     where d.supervisor_id <> :supervisor_id::uuid and d.declared_at < clock_timestamp() - interval '1 day'
       and not exists (select from tenure.workers w where w.supervisor_id = d.supervisor_id)),
own_schedules as materialized (
    select s.name
      from tenure.schedules s
     where s.name = any (:schedules::text[]) and s.owner = :owner::text and s.app_kinds is distinct from :kinds::text[]
     order by s.name
       for update),
updated_schedules as (
    update tenure.schedules s set app_kinds = :kinds::text[] from own_schedules o where s.name = o.name)
insert into tenure.declarations as d (supervisor_id, owner, kinds, schedules)
values (:supervisor_id::uuid, :owner::text, :kinds::text[], :schedules::text[])
on conflict (supervisor_id) do update
   set owner = excluded.owner, kinds = excluded.kinds, schedules = excluded.schedules, declared_at = clock_timestamp()
