-- make_history_day: creates one partition, and moves the rows of its day from the default partition to it. For make_history.
create or replace function tenure.make_history_day(day date) returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set timezone = 'UTC'
as $$
declare
    partition_name text := 'history_' || to_char(day, 'YYYYMMDD');
    first_moment timestamptz := day::timestamptz;
    last_moment timestamptz := (day + 1)::timestamptz;
begin
    execute format('create table tenure.%I (like tenure.history including all)', partition_name);
    execute format('alter table tenure.%I replica identity full', partition_name);
    if exists (select from tenure.history_default h where h.finished_at >= first_moment and h.finished_at < last_moment) then
        lock table only tenure.history in share update exclusive mode;
        lock table only tenure.history_default in access exclusive mode;
        execute format('with caught as (delete from tenure.history_default h where h.finished_at >= %L and h.finished_at < %L returning *)
                        insert into tenure.%I select * from caught', first_moment, last_moment, partition_name);
    end if;
    execute format('alter table tenure.history attach partition tenure.%I for values from (%L) to (%L)', partition_name, first_moment, last_moment);
end
$$;
