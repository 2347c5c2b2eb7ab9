-- make_history: creates the missing partitions of today and the next days, and missing indexes. Returns how many partitions it created. Raises lock_not_available when
-- it does not get a lock at once: call it again later.
--   Without a partition for today, finished jobs are written to the default partition all the time, so all other sessions are locked
--   out during the change. A lock on the default partition alone is not enough: a statement that was about to write to it would fail.
--   If it has few rows, they are moved. If it has many, the default partition becomes that of today, with all rows of the days before,
--   and a new and empty one replaces it. Rows that belong to neither are moved there.
--   Partitions of future days are attached, which blocks neither readers nor settling.
create or replace function tenure.make_history(days_ahead integer) returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '500ms'
set timezone = 'UTC'
as $$
declare
    today date := (clock_timestamp() at time zone 'UTC')::date;
    day date;
    made integer := 0;
begin
    if today not in (select tenure.history_days()) then
        lock table only tenure.history in access exclusive mode;
        if exists (select from tenure.history_default offset 1000 limit 1) then
            perform tenure.turn_default(today);
            made := 1;
        end if;
    end if;
    for day in
        select today + n from generate_series(0, days_ahead) as n where today + n not in (select tenure.history_days()) order by n
    loop
        perform tenure.make_history_day(day);
        made := made + 1;
    end loop;
    perform tenure.index_history(today);
    return made;
end
$$;
