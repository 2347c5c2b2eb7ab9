-- retire_schedules: retires schedules that no living supervisor declares any more, if a supervisor of the same app is alive. Run by a
-- duty: the statement itself checks holder and term. These are left over when the last process of an older version has ended.
--   only  null, or the names to restrict it to; peek: changes nothing, and returns what it would retire
-- Returns whether the term holds, and the names with their owners as JSON.
with leader as materialized (
    select 1 from tenure.leases l
     where l.name = :duty and l.holder = :holder::uuid and l.term = :term::bigint and l.expires_at > clock_timestamp()
       for key share),
undeclared as materialized (
    select s.name, s.owner
      from tenure.schedules s
     where s.owner is not null and s.retired_at is null and exists (select from leader)
       and (:only::text[] is null or s.name = any (:only::text[]))
       and exists (select from tenure.living_declarations d where d.owner = s.owner and tenure.same_app(d.kinds, s.app_kinds))
       and not exists (select from tenure.living_declarations d where d.owner = s.owner and s.name = any (d.schedules))
     order by s.name
       for update of s),
retired as (
    update tenure.schedules s
       set retired_at = clock_timestamp(), next_at = null, version = gen_random_uuid()
      from undeclared u
     -- If it was declared at the same moment, the row has another version, and is checked again in a minute.
     where s.name = u.name and s.retired_at is null and not :peek::boolean
    returning s.name, s.owner)
select exists (select from leader) as holds,
       (select json_agg(json_build_object('name', r.name, 'owner', r.owner) order by r.name)::text from retired r) as retired,
       (select json_agg(u.name order by u.name)::text from undeclared u where :peek::boolean) as peeked
