-- close_group: no more chains are added to an open group.
-- Returns its total. No row: it is not open.
create or replace function tenure.close_group(group_id uuid) returns setof integer
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
    update tenure.blocked d
       set open = false, missing = greatest(d.missing - 1, 0)
     where d.job_id = group_id and d.open
    returning d.total
$$;
