-- key_term: the scope and end of a key for 'live', 'forever' or a number of seconds. Null means forever.
create or replace function tenure.key_term(key_for text, out scope text, out expires_at timestamptz)
language sql volatile
set search_path = pg_catalog, pg_temp
as $$
    select case when coalesce(key_for, 'forever') in ('live', 'forever') then coalesce(key_for, 'forever') else 'window' end,
           case when key_for not in ('live', 'forever') then clock_timestamp() + make_interval(secs => key_for::double precision) end
$$;
