-- drop_audit: deletes these entries of the audit log. Workers, who clean up, may not delete there: by this function they can, but no entry
-- of the last 30 days, so that no account of theirs can hide what it has just done. Returns how many were deleted.
create or replace function tenure.drop_audit(ids bigint[]) returns bigint
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
    with dropped as (
        delete from tenure.audit a where a.id = any (ids) and a.at < clock_timestamp() - interval '30 days' returning 1)
    select count(*) from dropped
$$;
