-- declare_limits: stores the limits that a worker's code declares: [{"name", "rules"}]. Overrides set at run time still win.
-- Writes nothing if nothing changes. Sessions that change limits wait for each other, so versions are in the order of commits.
-- Returns the number of limits changed.
with version_lock as materialized (
    select c.id from tenure.limit_changes c where c.id for no key update),
declared as (
    insert into tenure.limits as l (name, declared, declared_at)
    select d.name, d.rules, clock_timestamp()
      from jsonb_to_recordset(:limits::jsonb) as d(name text, rules jsonb)
     where exists (select from version_lock)
     order by d.name
    on conflict (name) do update set declared = excluded.declared, declared_at = excluded.declared_at
     where l.declared is distinct from excluded.declared
    returning l.name),
new_version as (
    update tenure.limit_changes c set version = c.version + 1 where c.id and exists (select from declared))
select count(*) from declared
