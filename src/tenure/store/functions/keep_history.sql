-- keep_history: drop_history and make_history in one call.
create or replace function tenure.keep_history(days_ahead integer, keep interval)
returns table (made integer, dropped integer)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '500ms'
set timezone = 'UTC'
as $$
begin
    made := 0;
    dropped := 0;
    begin
        while tenure.drop_history(keep) is not null loop
            dropped := dropped + 1;
        end loop;
        made := tenure.make_history(days_ahead);
        delete from tenure.history_default where finished_at < (clock_timestamp() - keep)::date;
    exception when lock_not_available then
        made := 0;
        dropped := 0;
    end;
    return next;
end
$$;
