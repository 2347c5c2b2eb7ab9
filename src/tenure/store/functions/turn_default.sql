-- turn_default: turns the default partition into that of today and of all days before that have none. For make_history, under its lock.
create or replace function tenure.turn_default(today date) returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set timezone = 'UTC'
as $$
declare
    partition_name text := 'history_' || to_char(today, 'YYYYMMDD');
    last_moment timestamptz := (today + 1)::timestamptz;
    -- The end of the newest partition before today.
    first_moment timestamptz := ((select max(d) from tenure.history_days() as d where d < today) + 1)::timestamptz;
    granted record;
begin
    alter table tenure.history detach partition tenure.history_default;
    execute format('alter table tenure.history_default rename to %I', partition_name);
    create table tenure.history_default partition of tenure.history default;
    alter table tenure.history_default replica identity full;
    for granted in
        select a.privilege_type, case when a.grantee = 0 then 'public' else a.grantee::regrole::text end as grantee
          from pg_class c cross join aclexplode(c.relacl) as a
         where c.oid = format('tenure.%I', partition_name)::regclass and a.grantee <> c.relowner
    loop
        execute format('grant %s on tenure.history_default to %s', granted.privilege_type, granted.grantee);
    end loop;
    execute format('with others as (delete from tenure.%I h where h.finished_at < %L or h.finished_at >= %L returning *)
                    insert into tenure.history_default select * from others',
                   partition_name, coalesce(first_moment, '-infinity'), last_moment);
    execute format('alter table tenure.history attach partition tenure.%I for values from (%s) to (%L)',
                   partition_name, coalesce(quote_literal(first_moment), 'minvalue'), last_moment);
end
$$;
