-- What duties need: partitions that are repaired under load, replica identities, who declares which schedules, and functions that do
-- not depend on the session's search_path.

-- Replica identities, for publications of all tables: without one PostgreSQL refuses every update and delete of a published table.
-- These have no primary key, and an index of their own would cost every settled job a write. `full` costs nothing unless changes are
-- decoded logically. Only the catalog is changed; the lock is held for this moment. History comes first, and the parent before its
-- partitions, as for every statement that settles.
alter table tenure.history replica identity full;
do $$
declare
    part regclass;
begin
    for part in select i.inhrelid::regclass from pg_inherits i where i.inhparent = 'tenure.history'::regclass order by 1 loop
        execute format('alter table %s replica identity full', part);
    end loop;
end
$$;
alter table tenure.incidents replica identity full;
alter table tenure.tallies replica identity full;

-- Which schedules the code of each supervisor declares. A schedule is retired when the code of no living one has it any more.
create table tenure.declarations (
    supervisor_id uuid        not null primary key,
    owner         text        not null,
    kinds         text[]      not null,
    schedules     text[]      not null,
    declared_at   timestamptz not null default clock_timestamp()
);
-- A process registers its workers only after it has declared, so a fresh declaration counts without any.
create view tenure.living_declarations as
select d.supervisor_id, d.owner, d.kinds, d.schedules
  from tenure.declarations d
 where d.declared_at > clock_timestamp() - interval '1 minute'
    or exists (select from tenure.workers w
                where w.supervisor_id = d.supervisor_id and w.died_at is null and w.expires_at > clock_timestamp());
-- All kinds of the app that declares it: they distinguish two apps of the same name.
alter table tenure.schedules add column app_kinds text[];

-- same_app: whether two sets of kinds are those of one app, perhaps of two versions of it: at least half of the smaller set is in both.
create function tenure.same_app(one text[], other text[]) returns boolean
language sql immutable parallel safe
return one is null or other is null
    or 2 * (select count(*) from unnest(one) as k(kind) where k.kind = any (other)) >= least(cardinality(one), cardinality(other));

-- What functions call must not depend on the search_path of the session. Where the planner can inline one, its body is parsed
-- here and now; a setting of its own would prevent that.

alter function tenure.key_term(text) set search_path = pg_catalog, pg_temp;

create or replace function tenure.uuid7() returns uuid
language sql volatile parallel safe
return encode(
    set_bit(set_bit(
        overlay(uuid_send(gen_random_uuid())
            placing substring(int8send(floor(extract(epoch from clock_timestamp()) * 1000)::bigint) from 3)
            from 1 for 6),
        52, 1), 53, 1),
    'hex')::uuid;

-- gate_line: the group of a job under one limit. Line breaks separate the groups of a gate. A long key is cut and gets a digest: by
-- sha256, since md5 fails on servers in FIPS mode.
create or replace function tenure.gate_line(name text, key text, otherwise text, input jsonb) returns text
language sql immutable parallel safe
return (
    select name || case when key is null then ''
                        else '/' || key || '=' || translate(case when length(w.word) <= 100 then w.word
                                                                 else left(w.word, 60) || '~' || left(encode(sha256(convert_to(w.word, 'UTF8')), 'hex'), 32) end,
                                                            E'\r\n', '  ') end
      from (select coalesce(input #>> string_to_array(key, '.'), otherwise, '') as word) w);

-- gate_of: the groups to which such a job belongs at present, the kind's before the queue's; null: it is not limited.
create or replace function tenure.gate_of(kind text, queue text, input jsonb) returns text
language sql stable
return (
    select string_agg(tenure.gate_line(r.name, r.key, r.otherwise, input), E'\n' order by r.name)
      from tenure.limit_rules r
     where r.name in ('kind:' || kind, 'queue:' || queue));

-- Gates of long keys have another digest now: workers look over all gates when the version of the limits is another.
update tenure.limit_changes set version = version + 1 where exists (select from tenure.limits);

-- history_days: the days for which history has a partition. A partition is named after its last day, and usually is that day alone.
create function tenure.history_days() returns setof date
language sql stable
begin atomic
    select to_date(right(c.relname, 8), 'YYYYMMDD')
      from pg_inherits i
      join pg_class c on c.oid = i.inhrelid
     where i.inhparent = 'tenure.history'::regclass and c.relname ~ '^history_[0-9]{8}$';
end;

-- drop_history: drops the oldest partition of history, if its last day is older than keep. One at a time: readers and settling wait
-- for the moment of one drop. Returns its name; null: there is none. Raises lock_not_available when another session reads history for
-- long: to be tried again.
create function tenure.drop_history(keep interval) returns text
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
    -- The parent before its partitions, in the order of every reader: no deadlock.
    lock table only tenure.history in access exclusive mode;
    execute format('drop table tenure.%I', partition_name);
    return partition_name;
end
$$;

-- make_history: makes the partitions of today and the next days that are missing. Returns how many were made. Raises lock_not_available
-- when a lock is not had at once: to be tried again.
--   When today has none, finished jobs go to the default partition all the time. So all other sessions are kept out during the
--   change. A lock on the default partition alone is not enough: a statement that was about to write to it would be refused. Few
--   rows are moved. Many are not: the default partition becomes that of today, with all rows of the days before, and a new and
--   empty one takes its place. Rows that belong to neither are moved there.
--   Partitions of days to come are attached, which holds up neither readers nor settling.
create function tenure.make_history(days_ahead integer) returns integer
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
    return made;
end
$$;

-- make_history_day: one partition, with what the default partition caught of its day. For make_history.
create function tenure.make_history_day(day date) returns void
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

-- turn_default: the default partition becomes that of today and of all days before that have none. For make_history, under its lock.
create function tenure.turn_default(today date) returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set timezone = 'UTC'
as $$
declare
    partition_name text := 'history_' || to_char(today, 'YYYYMMDD');
    last_moment timestamptz := (today + 1)::timestamptz;
    -- Behind the newest partition before today.
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

-- keep_history: both of the above, for workers of the version before.
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

-- Where grants were narrowed before, they stay narrow: roles that may run keep_history may run these, and roles that may use schedules
-- may use declarations.
do $$
declare
    grants aclitem[] := (select p.proacl from pg_proc p where p.oid = 'tenure.keep_history(integer, interval)'::regprocedure);
    granted record;
    functions text := 'tenure.drop_history(interval), tenure.make_history(integer), tenure.history_days(), tenure.same_app(text[], text[])';
begin
    if grants is not null then
        execute format('revoke all on function %s, tenure.make_history_day(date), tenure.turn_default(date) from public', functions);
        for granted in
            select case when a.grantee = 0 then 'public' else a.grantee::regrole::text end as grantee
              from aclexplode(grants) as a where a.privilege_type = 'EXECUTE'
        loop
            execute format('grant execute on function %s to %s', functions, granted.grantee);
        end loop;
    end if;
    for granted in
        select a.privilege_type, case when a.grantee = 0 then 'public' else a.grantee::regrole::text end as grantee
          from pg_class c cross join aclexplode(c.relacl) as a
         where c.oid = 'tenure.schedules'::regclass and a.grantee <> c.relowner
    loop
        execute format('grant %s on tenure.declarations, tenure.living_declarations to %s', granted.privilege_type, granted.grantee);
    end loop;
end
$$;
