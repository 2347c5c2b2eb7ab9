-- What callers rely on: short names and finite times, keys that last, progress and the time of failure in the view.

-- Names that would not fit an index or a notification are refused where they come in. Rows from before stay as they are.
alter table tenure.schedules
    add constraint schedules_names check (octet_length(name) <= 200 and octet_length(kind) <= 200 and octet_length(queue) <= 200
        and (capability is null or octet_length(capability) <= 200)) not valid;
-- `kind:` or `queue:`, and a name.
alter table tenure.limits
    add constraint limits_length check (octet_length(name) <= 206) not valid;

create or replace view tenure.all_jobs as
select j.id, j.kind, j.queue, j.state, j.priority, j.capability, j.attempt, j.max_attempts, j.crashes, j.fence, j.claim_id, j.worker_id,
       j.enqueued_at, j.run_at, j.started_at, null::timestamptz as finished_at, j.error, j.input, null::jsonb as output,
       j.worker_id as lease_owner, least(w.expires_at, j.lease_until) as lease_expires_at, w.heartbeat_at,
       j.timeout, j.key, j.parent_id, j.enqueued_by, j.auth, j.meta, j.gate,
       coalesce((select p.percent from tenure.progress p where p.job_id = j.id), 0) as progress_percent,
       (select p.message from tenure.progress p where p.job_id = j.id) as progress_message,
       -- The last thing that happened to a dead letter is what made it one. Asked for as a range, in the order of the index: whatever
       -- the statistics say, any other way to read it would have to sort.
       case when j.state = 'dead_letter' then (
            select i.at from tenure.incidents i
             where i.job_id >= j.id and i.job_id <= j.id
             order by i.job_id desc, i.at desc limit 1) end as failed_at
  from tenure.jobs j
  left join tenure.workers w on w.id = j.worker_id
union all
select h.id, h.kind, h.queue, h.state, h.priority, h.capability, h.attempt, h.max_attempts, h.crashes, h.fence, h.claim_id, h.worker_id,
       h.enqueued_at, h.run_at, h.started_at, h.finished_at, h.error, h.input, h.output,
       null, null, null,
       h.timeout, h.key, h.parent_id, h.enqueued_by, h.auth, h.meta, null,
       coalesce((select p.percent from tenure.progress p where p.job_id = h.id), 0),
       (select p.message from tenure.progress p where p.job_id = h.id),
       case when h.state = 'failed' then h.finished_at end
  from tenure.history h;

-- database_id: tells this database from all others. The same after a failover, another for a copy that was restored from a dump.
-- Null where the server does not tell.
create function tenure.database_id() returns text
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

-- input_digest: of a job's input. Not md5, which a server in FIPS mode does not have.
create function tenure.input_digest(input jsonb) returns text
language sql stable
as $$
    select encode(sha256(convert_to(coalesce(input, '{}')::text, 'UTF8')), 'hex')
$$;

-- other_input: whether a digest is of other input. Digests of earlier versions are md5; where that is not to be had, nothing is claimed.
create function tenure.other_input(digest text, input jsonb) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    if length(digest) = 64 then
        return digest <> tenure.input_digest(input);
    end if;
    return digest <> md5(coalesce(input, '{}')::text);
exception when others then
    return false;
end
$$;

-- gate_line: the group of a job under one limit. Line breaks separate the groups of a gate; a long key is cut, and told from others by a
-- digest of all of it.
create or replace function tenure.gate_line(name text, key text, otherwise text, input jsonb) returns text
language sql immutable parallel safe
return (
    select name || case when key is null then ''
                        else '/' || key || '=' || translate(case when length(w.word) <= 100 then w.word
                                                                 else left(w.word, 60) || '~' || left(encode(sha256(convert_to(w.word, 'UTF8')), 'hex'), 32)
                                                            end, E'\r\n', '  ') end
      from (select coalesce(input #>> string_to_array(key, '.'), otherwise, '') as word) w);

-- key_term: what 'live', 'forever' or a number of seconds means; nothing means forever.
create or replace function tenure.key_term(key_for text, out scope text, out expires_at timestamptz)
language sql volatile
set search_path = pg_catalog, pg_temp
as $$
    select case when coalesce(key_for, 'forever') in ('live', 'forever') then coalesce(key_for, 'forever') else 'window' end,
           case when key_for not in ('live', 'forever') then clock_timestamp() + make_interval(secs => key_for::double precision) end
$$;

-- check_job: refuses what no table, index or notification can hold, in plain words. Returns the kind.
create function tenure.check_job(kind text, queue text, capability text, key text, delay double precision, run_at timestamptz,
                                 timeout double precision) returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    problem text := case
        when octet_length(kind) > 200 then format('kind is %s bytes long, at most 200 are allowed: shorten it', octet_length(kind))
        when octet_length(queue) > 200 then format('queue is %s bytes long, at most 200 are allowed: shorten it', octet_length(queue))
        when octet_length(capability) > 200
            then format('capability is %s bytes long, at most 200 are allowed: shorten it', octet_length(capability))
        when octet_length(key) > 200 then format('key is %s bytes long, at most 200 are allowed: use a digest of it', octet_length(key))
        when run_at not between '1970-01-01 00:00:00Z' and '2200-01-01 00:00:00Z'
            then format('run_at is %s, but must lie between the years 1970 and 2200', run_at)
        when delay not between -3155760000 and 3155760000 then format('delay is %s, but must be seconds, at most 100 years of them', delay)
        when timeout not between 0 and 3155760000 then format('timeout is %s, but must be seconds, at most 100 years of them', timeout)
    end;
begin
    if problem is not null then
        raise exception '%', problem using errcode = 'invalid_parameter_value';
    end if;
    return kind;
end
$$;

-- take_keys: marks each job whose key is taken with the job that stands for it (stands) and whether its input is another (differs).
-- For the rest, the key is theirs from here on. A key in doubt, because its taker has not committed yet, is waited for.
create or replace function tenure.take_keys(given jsonb) returns jsonb
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    perform tenure.check_job(g.kind, null, null, g.key, null, null, null)
       from jsonb_to_recordset(given) as g(kind text, key text)
      where g.key is not null and (octet_length(g.key) > 200 or octet_length(g.kind) > 200);
    if exists (select from jsonb_to_recordset(given) as g(key_for text)
                where g.key_for not in ('live', 'forever') and g.key_for !~ '^[0-9]{1,10}(\.[0-9]+)?(e-?[0-9])?$') then
        raise exception 'key_for must be live, forever or a number of seconds' using errcode = 'invalid_parameter_value';
    end if;
    select coalesce(jsonb_agg(case when e.job ->> 'id' is null then e.job || jsonb_build_object('id', tenure.uuid7()) else e.job end
                              order by e.place), '[]')
      into given
      from jsonb_array_elements(given) with ordinality as e(job, place);
    for tries in 1 .. 20 loop
        insert into tenure.keys as k (kind, key, job_id, scope, expires_at, digest)
        select distinct on (g.kind, g.key) g.kind, g.key, g.id, t.scope, t.expires_at, tenure.input_digest(g.input)
          from rows from (jsonb_to_recordset(given) as (id uuid, kind text, key text, key_for text, input jsonb))
               with ordinality as g(id, kind, key, key_for, input, place)
         cross join lateral tenure.key_term(g.key_for) as t
         where g.key is not null
         order by g.kind, g.key, g.place
        on conflict (kind, key) do nothing;
        -- Held still, in one order for everybody, before we look: what a statement saw earlier may be gone.
        perform from tenure.keys k
          where (k.kind, k.key) in (select g.kind, g.key from jsonb_to_recordset(given) as g(kind text, key text) where g.key is not null)
          order by k.kind, k.key
            for update;
        update tenure.keys k
           set job_id = g.id, scope = g.scope, taken_at = clock_timestamp(), expires_at = g.expires_at, digest = g.digest
          from (select distinct on (g.kind, g.key) g.id, g.kind, g.key, t.scope, t.expires_at, tenure.input_digest(g.input) as digest
                  from rows from (jsonb_to_recordset(given) as (id uuid, kind text, key text, key_for text, input jsonb))
                       with ordinality as g(id, kind, key, key_for, input, place)
                 cross join lateral tenure.key_term(g.key_for) as t
                 where g.key is not null
                 order by g.kind, g.key, g.place) g
         where k.kind = g.kind and k.key = g.key and k.job_id <> g.id
           -- A window that is over does not free the key of a job that is still to be done. A dead letter is not: nothing happens
           -- to it by itself, and it takes its key again when it is replayed.
           and (k.scope = 'live' or k.expires_at <= clock_timestamp())
           and not exists (select from tenure.jobs j where j.id = k.job_id and j.state <> 'dead_letter');
        exit when not exists (
            select from jsonb_to_recordset(given) as g(kind text, key text)
             where g.key is not null and not exists (select from tenure.keys k where k.kind = g.kind and k.key = g.key));
        if tries = 20 then
            raise exception 'the keys of these jobs are being removed all the time' using errcode = 'serialization_failure';
        end if;
    end loop;
    return (
        select coalesce(jsonb_agg(case when k.job_id is null or k.job_id = (e.job ->> 'id')::uuid then e.job
                    else e.job || jsonb_build_object('stands', k.job_id, 'differs', tenure.other_input(k.digest, e.job -> 'input')) end
                    order by e.place), '[]')
          from jsonb_array_elements(given) with ordinality as e(job, place)
          left join tenure.keys k on k.kind = e.job ->> 'kind' and k.key = e.job ->> 'key');
end
$$;

-- enqueue_again: the same as enqueue, when an earlier call may or may not have been committed.
create or replace function tenure.enqueue_again(given jsonb)
returns table (id uuid, existed boolean, differs boolean, asked uuid)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    fresh jsonb;
begin
    if exists (select from jsonb_to_recordset(given) as g(id uuid) where g.id is null) then
        raise exception 'enqueue again needs the ids of the call that it repeats' using errcode = 'invalid_parameter_value';
    end if;
    for tries in 1 .. 10 loop
        select coalesce(jsonb_agg(g.job order by g.place), '[]') into fresh
          from (select distinct on (e.job ->> 'id') e.job, e.place
                  from jsonb_array_elements(given) with ordinality as e(job, place)
                 where (select j.id from tenure.jobs j where j.id = (e.job ->> 'id')::uuid limit 1) is null
                   and (select h.id from tenure.history h where h.id = (e.job ->> 'id')::uuid limit 1) is null
                 order by e.job ->> 'id', e.place) g;
        begin
            return query select e.* from tenure.enqueue(fresh::text, false) e;
            exit;
        exception when unique_violation then
            -- The earlier call was still under way and has committed just now: look again. A snapshot that is older than that
            -- never sees it, and a unique index of somebody else's is none of our business.
            if current_setting('transaction_isolation') <> 'read committed' then
                raise exception 'the earlier call is not visible to this transaction' using errcode = 'serialization_failure';
            elsif tries = 10 then
                raise;
            end if;
        end;
    end loop;
    -- A new statement sees whatever had to happen before our insert could succeed: a job that
    -- finished in between stands in history by now, and its second coming is taken back.
    delete from tenure.jobs j
     where j.ctid = any (array(
        select j.place
          from jsonb_to_recordset(fresh) as g(id uuid)
         cross join lateral (select h.id from tenure.history h where h.id = g.id limit 1) h
         cross join lateral (select j.ctid as place from tenure.jobs j where j.id = g.id limit 1) j));
    return query
    select (e.job ->> 'id')::uuid, true, false, (e.job ->> 'id')::uuid
      from jsonb_array_elements(given) with ordinality as e(job, place)
     where (e.job ->> 'id')::uuid not in (select f.id from jsonb_to_recordset(fresh) as f(id uuid))
     order by e.place;
end
$$;

-- enqueue: the one way by which jobs come in, for every driver and language.
--   jobs      a JSON array of objects: kind (required), input, queue, priority, capability, max_attempts, timeout (seconds), id,
--             delay (seconds) or run_at for later, auth, meta, by (who enqueues it), and
--             key with key_for: 'forever' (the default), 'live' (until the job is over), or a number of seconds;
--             parent with claim: the run on whose behalf it is enqueued, which must still hold its job.
--             What is left out takes its default. Names and keys have at most 200 bytes, times are finite.
--   again     true when the outcome of an earlier call with the same ids is unknown: what that call did write, even if it has
--             finished since, is not written a second time.
--   borrowed  true inside a transaction of the caller's: then the parent's row is looked at, but not locked until its end.
-- Returns one row per job: the id of the job that stands for it; whether that one was there before, and then whether its
-- input is another; and the id that was asked for.
create or replace function tenure.enqueue(jobs text, again boolean default false, borrowed boolean default false)
returns table (id uuid, existed boolean, differs boolean, asked uuid)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    given jsonb := jobs::jsonb;
    keyed boolean := position('"key"' in jobs) > 0;
    limited text[] := array(select r.name from tenure.limit_rules r);
begin
    -- The transaction id must be older than any position it takes: workers rely on that order to know
    -- below which position nothing can appear any more.
    perform pg_current_xact_id();
    if again then
        return query select e.* from tenure.enqueue_again(given) e;
        return;
    end if;
    if position('"claim"' in jobs) > 0 then
        perform tenure.check_parents(given, not borrowed);
    end if;
    if keyed then
        given := tenure.take_keys(given);
    end if;
    return query
    with put as (
        insert into tenure.jobs (id, state, position, run_at, kind, queue, priority, capability, max_attempts, timeout, input,
               key, parent_id, enqueued_by, auth, meta, gate)
        select coalesce(g.id, tenure.uuid7()),
               case when due.later is null then 'pending' else 'scheduled' end,
               case when due.later is null then nextval('tenure.job_position') else 0 end,
               due.later,
               -- Asked in full only where something is wrong: nearly every job is right.
               case when octet_length(g.kind) > 200 or octet_length(g.queue) > 200 or octet_length(g.capability) > 200
                      or g.run_at not between '1970-01-01 00:00:00Z' and '2200-01-01 00:00:00Z'
                      or g.delay not between -3155760000 and 3155760000 or g.timeout not between 0 and 3155760000
                    then tenure.check_job(g.kind, g.queue, g.capability, null, g.delay, g.run_at, g.timeout)
                    else g.kind end,
               coalesce(g.queue, 'default'), coalesce(g.priority, 50::smallint), g.capability,
               coalesce(g.max_attempts, 3), g.timeout, coalesce(g.input, '{}'),
               g.key, g.parent, coalesce(g.by, session_user::text), g.auth, g.meta,
               -- Who is not limited pays for a look at a short list, and for nothing while there are no limits at all.
               case when limited <> '{}' and ('kind:' || g.kind = any (limited) or 'queue:' || coalesce(g.queue, 'default') = any (limited))
                    then tenure.gate_of(g.kind, coalesce(g.queue, 'default'), coalesce(g.input, '{}')) end
          from jsonb_to_recordset(given) as g(id uuid, kind text, queue text, priority smallint, capability text,
               max_attempts integer, timeout double precision, delay double precision, run_at timestamptz, input jsonb,
               key text, parent uuid, by text, auth jsonb, meta jsonb, stands uuid)
         cross join lateral (
            select coalesce(g.run_at, case when g.delay between -3155760000 and 3155760000
                                           then clock_timestamp() + make_interval(secs => g.delay) end) as run_at) as wanted
         cross join lateral (select case when wanted.run_at > clock_timestamp() then wanted.run_at end as later) as due
         where not keyed or g.stands is null
        returning jobs.id, jobs.queue, jobs.kind),
    tallied as (
        insert into tenure.tallies (queue, kind, what, jobs)
        select p.queue, p.kind, 'enqueued', count(*) from put p group by p.queue, p.kind)
    select p.id, false, false, p.id from put p;
    if keyed then
        return query
        select g.stands, true, g.differs, g.id
          from jsonb_to_recordset(given) as g(id uuid, stands uuid, differs boolean)
         where g.stands is not null;
    end if;
end
$$;

-- Where grants were narrowed before, they stay narrow. Whoever may enqueue may ask which database this is; whoever may run the other
-- functions of workers may run these.
do $$
declare
    enqueuers aclitem[] := (select p.proacl from pg_proc p where p.oid = 'tenure.enqueue(text, boolean, boolean)'::regprocedure);
    workers aclitem[] := (select p.proacl from pg_proc p where p.oid = 'tenure.keep_history(integer, interval)'::regprocedure);
    grantee text;
begin
    if enqueuers is not null then
        revoke all on function tenure.database_id() from public;
        for grantee in
            select case when a.grantee = 0 then 'public' else a.grantee::regrole::text end
              from aclexplode(enqueuers) as a where a.privilege_type = 'EXECUTE'
        loop
            execute format('grant execute on function tenure.database_id() to %s', grantee);
        end loop;
    end if;
    if workers is not null then
        revoke all on function tenure.input_digest(jsonb), tenure.other_input(text, jsonb), tenure.take_keys(jsonb), tenure.key_term(text),
               tenure.check_job(text, text, text, text, double precision, timestamptz, double precision) from public;
        for grantee in
            select case when a.grantee = 0 then 'public' else a.grantee::regrole::text end
              from aclexplode(workers) as a where a.privilege_type = 'EXECUTE'
        loop
            execute format('grant execute on function tenure.input_digest(jsonb), tenure.other_input(text, jsonb), '
                'tenure.take_keys(jsonb), tenure.key_term(text), '
                'tenure.check_job(text, text, text, text, double precision, timestamptz, double precision) to %s', grantee);
        end loop;
    end if;
end
$$;
