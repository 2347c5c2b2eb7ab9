-- reset_limit: takes back what was said at run time: the code's word counts again. With :all, that one is taken back as well, until
-- a worker whose code says it declares it anew.
-- Returns the rules that hold from now on; no row: there was nothing to take back.
with turn as materialized (
    select c.id from tenure.limit_changes c where c.id for no key update),
back as (
    update tenure.limits l
       set override = null, override_at = null, override_by = null, declared = case when :all::boolean then null else l.declared end
     where l.name = :name::text and exists (select from turn) and (l.override is not null or (:all::boolean and l.declared is not null))
    returning l.rules),
counted as (
    update tenure.limit_changes c set version = c.version + 1 where c.id and exists (select from back))
select b.rules::text from back b
