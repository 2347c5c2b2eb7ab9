-- override_limit: sets rules of a limit at run time, one key at a time; null removes a rule that the code declares. Rules set earlier
-- stay unless they are set again.
-- Returns the rules in force from now on.
with version_lock as materialized (
    select c.id from tenure.limit_changes c where c.id for no key update),
overridden as (
    insert into tenure.limits as l (name, override, override_at, override_by)
    select :name::text, :rules::jsonb, clock_timestamp(), :by::text where exists (select from version_lock)
    on conflict (name) do update
       set override = coalesce(l.override, '{}') || excluded.override, override_at = excluded.override_at, override_by = excluded.override_by
    returning l.rules),
new_version as (
    update tenure.limit_changes c set version = c.version + 1 where c.id and exists (select from overridden))
select o.rules::text from overridden o
