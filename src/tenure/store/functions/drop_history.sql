-- drop_history: drops the oldest partition of history if its last day is older than keep. One at a time: readers and settling wait
-- only while one partition is dropped. Returns its name, or null if there is none to drop. Raises lock_not_available when another
-- session reads history for long: call it again later.
create or replace function tenure.drop_history(keep interval) returns text
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '500ms'
set timezone = 'UTC'
as $$
declare
    oldest date := (select min(d) from tenure.history_days() as d);
    partition_name text := 'history_' || to_char(oldest, 'YYYYMMDD');
begin
    if oldest is null or oldest + 1 > (clock_timestamp() - keep)::date then
        return null;
    end if;
    -- Locks the parent before its partitions, in the same order as every reader, to avoid deadlocks.
    lock table only tenure.history in access exclusive mode;
    execute format('drop table tenure.%I', partition_name);
    return partition_name;
end
$$;
