-- What handlers and callers need beyond the core path: keys, children, progress, logs, incidents, watches, counters.

alter table tenure.jobs
    add column timeout     double precision,
    add column key         text,
    add column parent_id   uuid,
    add column enqueued_by text,
    add column auth        jsonb,
    add column meta        jsonb;

alter table tenure.history
    add column run_at      timestamptz,
    add column timeout     double precision,
    add column key         text,
    add column parent_id   uuid,
    add column enqueued_by text,
    add column auth        jsonb,
    add column meta        jsonb;

create index jobs_dead on tenure.jobs (kind, id) where state = 'dead_letter';
create index jobs_parent on tenure.jobs (parent_id, id) where parent_id is not null;

-- Idempotency: which job stands for a key. The primary key makes two jobs for one key impossible, whoever commits when.
create table tenure.keys (
    kind       text        not null,
    key        text        not null,
    job_id     uuid        not null,
    scope      text        not null,
    taken_at   timestamptz not null default clock_timestamp(),
    expires_at timestamptz,
    -- Of the input, so that other input under the same key is noticed.
    digest     text        not null,
    constraint keys_pkey primary key (kind, key),
    constraint keys_scope check (scope in ('live', 'window', 'forever') and (scope = 'window') = (expires_at is not null)),
    constraint keys_length check (key <> '' and length(key) <= 512)
);
create index keys_expires on tenure.keys (expires_at) where expires_at is not null;

-- The latest word of each job about how far it is. Narrow, and no indexed column ever changes.
create table tenure.progress (
    job_id     uuid             not null primary key,
    fence      bigint           not null,
    began_at   timestamptz      not null default clock_timestamp(),
    updated_at timestamptz      not null default clock_timestamp(),
    percent    double precision not null,
    message    text
) with (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0
);
create index progress_began on tenure.progress (began_at);

-- Log lines of a run, some at a time; only the last ones of each run are kept.
create table tenure.logs (
    job_id     uuid        not null,
    fence      bigint      not null,
    first_line integer     not null,
    last_line  integer     not null,
    at         timestamptz not null default clock_timestamp(),
    lines      jsonb       not null,
    constraint logs_pkey primary key (job_id, fence, first_line)
);
create index logs_at on tenure.logs (at);

-- What went otherwise than planned: failed attempts, crashes, lost leases, snoozes, cancellations, replays. A job that
-- simply completes has none; the rest of its life is told by its row.
create table tenure.incidents (
    job_id     uuid        not null,
    at         timestamptz not null default clock_timestamp(),
    what       text        not null,
    attempt    integer,
    fence      bigint,
    worker_id  uuid,
    started_at timestamptz,
    next_at    timestamptz,
    by         text,
    error      text
);
create index incidents_job on tenure.incidents (job_id, at);
create index incidents_at on tenure.incidents (at);

-- Jobs that somebody waits for: their worker says so when they move. Without a row nobody is told, and nothing is paid.
create table tenure.watches (
    job_id uuid        not null primary key,
    until  timestamptz not null
);

-- Counts of what was settled: one row per statement and kind, merged into counters by the leader.
create table tenure.tallies (
    at     timestamptz not null default clock_timestamp(),
    queue  text        not null,
    kind   text        not null,
    what   text        not null,
    jobs   integer     not null,
    waited interval,
    ran    interval
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);

create table tenure.counters (
    hour   timestamptz not null,
    queue  text        not null,
    kind   text        not null,
    what   text        not null,
    jobs   bigint      not null,
    waited interval    not null default '0',
    ran    interval    not null default '0',
    constraint counters_pkey primary key (queue, kind, what, hour)
) with (fillfactor = 70);

create or replace view tenure.all_jobs as
select j.id, j.kind, j.queue, j.state, j.priority, j.capability, j.attempt, j.max_attempts, j.crashes, j.fence, j.claim_id, j.worker_id,
       j.enqueued_at, j.run_at, j.started_at, null::timestamptz as finished_at, j.error, j.input, null::jsonb as output,
       j.worker_id as lease_owner, least(w.expires_at, j.lease_until) as lease_expires_at, w.heartbeat_at,
       j.timeout, j.key, j.parent_id, j.enqueued_by, j.auth, j.meta
  from tenure.jobs j
  left join tenure.workers w on w.id = j.worker_id
union all
select h.id, h.kind, h.queue, h.state, h.priority, h.capability, h.attempt, h.max_attempts, h.crashes, h.fence, h.claim_id, h.worker_id,
       h.enqueued_at, h.run_at, h.started_at, h.finished_at, h.error, h.input, h.output,
       null, null, null,
       h.timeout, h.key, h.parent_id, h.enqueued_by, h.auth, h.meta
  from tenure.history h;

-- enqueue: the one door by which jobs come in, for every driver and language.
--   jobs      a JSON array of objects: kind (required), input, queue, priority, capability, max_attempts, timeout (seconds), id,
--             delay (seconds) or run_at for later, auth, meta, by (who hands it in), and
--             key with key_for: 'live' (until the job is finished), 'forever', or a number of seconds (a day);
--             parent with claim: the run on whose behalf it is handed in, which must still hold its job.
--             What is left out takes its default.
--   again     true when the outcome of an earlier call with the same ids is unknown: what that call did write, even if it has
--             finished since, is not written a second time.
--   borrowed  true inside a transaction of the caller's: then the parent's row is looked at, but not locked until its end.
-- Returns one row per job: the id of the job that stands for it; whether that one was there before, and then whether its
-- input is another; and the id that was asked for.
do $$
begin
    perform set_config('tenure_migration.grants', coalesce(
        (select p.proacl::text from pg_proc p where p.oid = 'tenure.enqueue(text, boolean)'::regprocedure), ''), true);
end
$$;
drop function tenure.enqueue(text, boolean);
create function tenure.enqueue(jobs text, again boolean default false, borrowed boolean default false)
returns table (id uuid, existed boolean, differs boolean, asked uuid)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    given jsonb := jobs::jsonb;
    keyed boolean := position('"key"' in jobs) > 0;
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
    insert into tenure.jobs (id, state, position, run_at, kind, queue, priority, capability, max_attempts, timeout, input,
           key, parent_id, enqueued_by, auth, meta)
    select coalesce(g.id, tenure.uuid7()),
           case when due.later is null then 'pending' else 'scheduled' end,
           case when due.later is null then nextval('tenure.job_position') else 0 end,
           due.later,
           g.kind, coalesce(g.queue, 'default'), coalesce(g.priority, 50::smallint), g.capability,
           coalesce(g.max_attempts, 3), g.timeout, coalesce(g.input, '{}'),
           g.key, g.parent, coalesce(g.by, session_user::text), g.auth, g.meta
      from jsonb_to_recordset(given) as g(id uuid, kind text, queue text, priority smallint, capability text,
           max_attempts integer, timeout double precision, delay double precision, run_at timestamptz, input jsonb,
           key text, parent uuid, by text, auth jsonb, meta jsonb, stands uuid)
     cross join lateral (select coalesce(g.run_at, clock_timestamp() + make_interval(secs => g.delay)) as run_at) as wanted
     cross join lateral (select case when wanted.run_at > clock_timestamp() then wanted.run_at end as later) as due
     where not keyed or g.stands is null
    returning jobs.id, false, false, jobs.id;
    if keyed then
        return query
        select g.stands, true, g.differs, g.id
          from jsonb_to_recordset(given) as g(id uuid, stands uuid, differs boolean)
         where g.stands is not null;
    end if;
end
$$;

-- check_parents: refuses jobs that a run hands in which does not hold its own job any more.
create function tenure.check_parents(given jsonb, locking boolean) returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    if locking then
        -- Whoever would take the job away must wait until the children are in.
        perform from tenure.jobs j
          where j.id in (select g.parent from jsonb_to_recordset(given) as g(parent uuid, claim uuid) where g.claim is not null)
          order by j.id
            for share;
    end if;
    if exists (select from jsonb_to_recordset(given) as g(parent uuid, claim uuid)
                where g.claim is not null
                  and not exists (select from tenure.jobs j where j.id = g.parent and j.claim_id = g.claim)) then
        raise exception 'the run that hands in this job does not hold its own job any more' using errcode = 'P0T01';
    end if;
end
$$;

-- take_keys: marks each job whose key is taken with the job that stands for it (stands) and whether its input is another (differs).
-- For the rest, the key is theirs from here on. A key in doubt, because its taker has not committed yet, is waited for.
create function tenure.take_keys(given jsonb) returns jsonb
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    select coalesce(jsonb_agg(case when e.job ->> 'id' is null then e.job || jsonb_build_object('id', tenure.uuid7()) else e.job end
                              order by e.place), '[]')
      into given
      from jsonb_array_elements(given) with ordinality as e(job, place);
    loop
        insert into tenure.keys as k (kind, key, job_id, scope, expires_at, digest)
        select distinct on (g.kind, g.key) g.kind, g.key, g.id, t.scope, t.expires_at, md5(coalesce(g.input, '{}')::text)
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
          from (select distinct on (g.kind, g.key) g.id, g.kind, g.key, t.scope, t.expires_at, md5(coalesce(g.input, '{}')::text) as digest
                  from rows from (jsonb_to_recordset(given) as (id uuid, kind text, key text, key_for text, input jsonb))
                       with ordinality as g(id, kind, key, key_for, input, place)
                 cross join lateral tenure.key_term(g.key_for) as t
                 where g.key is not null
                 order by g.kind, g.key, g.place) g
         where k.kind = g.kind and k.key = g.key and k.job_id <> g.id
           -- A window that is over does not free the key of a job that is still to be done.
           and (k.scope = 'live' or k.expires_at <= clock_timestamp())
           and not exists (select from tenure.jobs j where j.id = k.job_id);
        exit when not exists (
            select from jsonb_to_recordset(given) as g(kind text, key text)
             where g.key is not null and not exists (select from tenure.keys k where k.kind = g.kind and k.key = g.key));
    end loop;
    return (
        select coalesce(jsonb_agg(case when k.job_id is null or k.job_id = (e.job ->> 'id')::uuid then e.job
                    else e.job || jsonb_build_object('stands', k.job_id, 'differs', k.digest <> md5(coalesce(e.job -> 'input', '{}')::text)) end
                    order by e.place), '[]')
          from jsonb_array_elements(given) with ordinality as e(job, place)
          left join tenure.keys k on k.kind = e.job ->> 'kind' and k.key = e.job ->> 'key');
end
$$;

-- key_term: what 'live', 'forever' or a number of seconds means.
create function tenure.key_term(key_for text, out scope text, out expires_at timestamptz)
language sql volatile
as $$
    select case when key_for in ('live', 'forever') then key_for else 'window' end,
           case when key_for in ('live', 'forever') then null
                else clock_timestamp() + make_interval(secs => coalesce(key_for, '86400')::double precision) end
$$;

-- enqueue_again: the same, when an earlier call may or may not have been committed.
create function tenure.enqueue_again(given jsonb)
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
    loop
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
            -- The earlier call was still under way and has committed just now: look again.
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

-- Who might enqueue before may do so now, and nobody else.
do $$
declare
    grants text := current_setting('tenure_migration.grants');
    grantee text;
begin
    if grants = '' then
        return;
    end if;
    revoke all on function tenure.enqueue(text, boolean, boolean), tenure.enqueue_again(jsonb), tenure.take_keys(jsonb),
           tenure.key_term(text), tenure.check_parents(jsonb, boolean) from public;
    for grantee in
        select case when a.grantee = 0 then 'public' else a.grantee::regrole::text end
          from aclexplode(grants::aclitem[]) as a where a.privilege_type = 'EXECUTE'
    loop
        execute format('grant execute on function tenure.enqueue(text, boolean, boolean) to %s', grantee);
    end loop;
end
$$;
