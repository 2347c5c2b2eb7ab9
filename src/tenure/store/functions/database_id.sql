-- database_id: identifies this database among all others. It stays the same after a failover, and differs for a copy restored from a
-- dump. Null if the server does not reveal it.
create or replace function tenure.database_id() returns text
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return (select c.system_identifier::text || '/' || d.oid::text
              from pg_control_system() c cross join pg_database d
             where d.datname = current_database());
exception when others then
    return null;
end
$$;
