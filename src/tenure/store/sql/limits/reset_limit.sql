-- reset_limit: removes the rules of a limit that were set at run time, so that those declared in code apply again. With :all, the declared
-- ones are removed as well, until a worker whose code has them declares them again.
-- Returns the rules in force from now on. No row: there was nothing to remove.
with version_lock as materialized (
    select c.id from tenure.limit_changes c where c.id for no key update),
cleared as (
    update tenure.limits l
       set override = null, override_at = null, override_by = null, declared = case when :all::boolean then null else l.declared end
     where l.name = :name::text and exists (select from version_lock) and (l.override is not null or (:all::boolean and l.declared is not null))
    returning l.rules),
new_version as (
    update tenure.limit_changes c set version = c.version + 1 where c.id and exists (select from cleared))
select c.rules::text from cleared c
