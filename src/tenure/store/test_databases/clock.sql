-- clock: gives a test database a clock of its own, which tests can set ahead. now(), statement_timestamp() and clock_timestamp() of every
-- new session, of Tenure's functions, views and column defaults are read from it. Run after the migrations, also after later
-- ones, which create functions and views again.
-- The clock's schema stands before pg_catalog in the search path, and behind the caller's own schemas: their tables go where they always went.
do $$
declare
    home oid := (select c.relnamespace from pg_class c where c.oid = 'tenure.jobs'::regclass);
    before text := 'pg_catalog, pg_temp';
    after text := 'tenure_clock, pg_catalog, pg_temp';
    path text := current_setting('search_path');
    found record;
begin
    if to_regnamespace('tenure_clock') is null then
        create schema tenure_clock;
        create table tenure_clock.clock (ahead interval not null);
        insert into tenure_clock.clock values ('0');
        create function tenure_clock.clock_timestamp() returns timestamptz language sql volatile
            as 'select pg_catalog.clock_timestamp() + (select c.ahead from tenure_clock.clock c)';
        create function tenure_clock.now() returns timestamptz language sql stable
            as 'select pg_catalog.now() + (select c.ahead from tenure_clock.clock c)';
        create function tenure_clock.statement_timestamp() returns timestamptz language sql stable
            as 'select pg_catalog.statement_timestamp() + (select c.ahead from tenure_clock.clock c)';
        grant usage on schema tenure_clock to public;
        grant select on tenure_clock.clock to public;
        execute format('alter database %I set search_path = %s, tenure_clock, pg_catalog', current_database(), path);
    end if;
    -- What was bound to the server's clock when it was created is read as text under the old path and created again under the new one.
    for found in select p.oid, p.oid::regprocedure as name, p.prosqlbody is not null as parsed, p.proconfig is not null as configured
                   from pg_proc p where p.pronamespace = home and p.prokind = 'f' loop
        if found.parsed then
            perform set_config('search_path', before, true);
            declare
                definition text := pg_get_functiondef(found.oid);
            begin
                perform set_config('search_path', after, true);
                execute definition;
            end;
        elsif found.configured then
            execute format('alter function %s set search_path = %s', found.name, after);
        end if;
    end loop;
    for found in select c.oid from pg_class c where c.relnamespace = home and c.relkind = 'v' loop
        perform set_config('search_path', before, true);
        declare
            definition text := pg_get_viewdef(found.oid);
        begin
            perform set_config('search_path', after, true);
            execute format('create or replace view %s as %s', found.oid::regclass, definition);
        end;
    end loop;
    for found in select d.adrelid, a.attname, d.adbin from pg_attrdef d
                   join pg_class c on c.oid = d.adrelid and c.relnamespace = home
                   join pg_attribute a on a.attrelid = d.adrelid and a.attnum = d.adnum and a.attgenerated = '' loop
        perform set_config('search_path', before, true);
        declare
            expression text := pg_get_expr(found.adbin, found.adrelid);
        begin
            perform set_config('search_path', after, true);
            if expression like '%clock_timestamp()%' or expression like '%now()%' then
                execute format('alter table %s alter column %I set default %s', found.adrelid::regclass, found.attname, expression);
            end if;
        end;
    end loop;
end
$$
