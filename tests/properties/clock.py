"""Time as the test says it: PostgreSQL's clock, replaced for one database.

A schema that stands before pg_catalog in the search path has a `clock_timestamp()` and a `now()` of its own, which read a
setting of the session. So the product's statements are run as they are, and all of them see the same standing clock.
"""

from __future__ import annotations

import psycopg

SETTING = "tenure_test.now"
PATH = "clock, pg_catalog, pg_temp"

BEGIN = 1_893_456_000.0
"""Where time begins, in seconds. All steps are multiples of an eighth, so that sums are exact."""

_CLOCK = f"""
create schema clock;
create function clock.clock_timestamp() returns timestamptz language sql volatile
    as $$ select to_timestamp(current_setting('{SETTING}')::float8) $$;
create function clock.now() returns timestamptz language sql stable
    as $$ select to_timestamp(current_setting('{SETTING}')::float8) $$;

-- Functions with a search path of their own, and defaults, which were bound to the real clock when they were made.
do $$
declare
    found record;
begin
    for found in
        select p.oid::regprocedure as name from pg_proc p
         where p.pronamespace = 'tenure'::regnamespace and p.proconfig::text like '%search_path%'
    loop
        execute format('alter function %s set search_path = {PATH}', found.name);
    end loop;
    for found in
        select d.adrelid::regclass as place, a.attname as name from pg_attrdef d
          join pg_attribute a on a.attrelid = d.adrelid and a.attnum = d.adnum
          join pg_class c on c.oid = d.adrelid and c.relnamespace = 'tenure'::regnamespace
         where pg_get_expr(d.adbin, d.adrelid) ~ '[[:<:]](clock_timestamp|now)[[:>:]]'
    loop
        execute format('alter table %s alter column %I set default clock.clock_timestamp()', found.place, found.name);
    end loop;
end
$$;
"""


def install(connection: psycopg.Connection) -> None:
    connection.execute(_CLOCK.encode(), prepare=False)


def set_to(connection: psycopg.Connection, now: float) -> None:
    connection.execute(f"select set_config('{SETTING}', %s, false)", [repr(now)])
