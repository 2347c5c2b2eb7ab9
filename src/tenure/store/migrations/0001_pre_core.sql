-- The tables of the core path: live jobs, history, workers, leases, queues.

-- The order key: taken when a job becomes pending, so that FIFO means "by readiness".
-- Never cached per session: a cache would hand late callers early places.
create sequence tenure.job_position as bigint cache 1;

-- Live jobs only. Finishing moves the row to tenure.history, so this table stays as small as the backlog.
create table tenure.jobs (
    id            uuid        not null,
    claim_id      uuid,
    worker_id     uuid,
    position      bigint      not null default 0,
    fence         bigint      not null default 0,
    enqueued_at   timestamptz not null default clock_timestamp(),
    run_at        timestamptz,
    started_at    timestamptz,
    lease_until   timestamptz,
    attempt       integer     not null default 0,
    max_attempts  integer     not null default 3,
    priority      smallint    not null default 50,
    crashes       smallint    not null default 0,
    state         text        not null,
    kind          text        not null,
    queue         text        not null default 'default',
    capability    text,
    error         text,
    input         jsonb       not null default '{}',
    constraint jobs_pkey primary key (id),
    -- One constraint, the common states first: it is checked on every write.
    constraint jobs_state check (
        case state
            when 'pending' then claim_id is null
            when 'running' then claim_id is not null
            when 'claimed' then claim_id is not null
            when 'scheduled' then claim_id is null and run_at is not null
            when 'retry' then claim_id is null and run_at is not null
            when 'dead_letter' then claim_id is null
            when 'blocked' then claim_id is null
            when 'waiting' then claim_id is null
            else false
        end),
    constraint jobs_bounds check (priority >= 0 and priority <= 100 and attempt >= 0 and max_attempts >= 1 and kind <> '' and queue <> '')
) with (
    -- Room on the page for the claimed version: the update stays on its page and writes less WAL.
    fillfactor = 50,
    -- The dead rows of a queue are made faster than any scale factor notices.
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 100000,
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 10000,
    autovacuum_vacuum_cost_delay = 0
);

create index jobs_pending on tenure.jobs (queue, priority desc, position) where state = 'pending';
create index jobs_due on tenure.jobs (run_at) where state in ('scheduled', 'retry');
create index jobs_held on tenure.jobs (worker_id) where worker_id is not null;
create index jobs_leased on tenure.jobs (lease_until) where lease_until is not null;
-- Jobs that were in two crashes already: they run alone, so that only their own crash can condemn them.
create index jobs_suspect on tenure.jobs (queue, priority desc, position) where state = 'pending' and crashes >= 2;

-- Finished jobs, a partition a day; retention drops partitions.
create table tenure.history (
    id            uuid        not null,
    claim_id      uuid,
    worker_id     uuid,
    fence         bigint      not null,
    enqueued_at   timestamptz not null,
    started_at    timestamptz,
    finished_at   timestamptz not null,
    attempt       integer     not null,
    max_attempts  integer     not null,
    priority      smallint    not null,
    crashes       smallint    not null,
    state         text        not null,
    kind          text        not null,
    queue         text        not null,
    capability    text,
    error         text,
    input         jsonb       not null,
    output        jsonb,
    constraint history_final_state check (state in ('completed', 'failed', 'canceled'))
) partition by range (finished_at);

create index history_id on tenure.history (id);

-- Catches a day for which nobody made a partition in time: late housekeeping must not stop the work.
create table tenure.history_default partition of tenure.history default;

-- One row per process that runs handlers. The lease of everything it holds is this row's expires_at.
create table tenure.workers (
    id            uuid        not null primary key,
    supervisor_id uuid        not null,
    host          text        not null,
    pid           integer     not null,
    queues        jsonb       not null,
    kinds         jsonb       not null,
    capabilities  jsonb       not null,
    concurrency   integer     not null,
    version       text        not null,
    started_at    timestamptz not null default clock_timestamp(),
    heartbeat_at  timestamptz not null default clock_timestamp(),
    expires_at    timestamptz not null,
    -- Once set, the worker can neither claim nor renew; its row goes when its jobs have been given back.
    died_at       timestamptz,
    died_how      text,
    constraint workers_died_how check (died_how in ('crashed', 'expired', 'stopped'))
) with (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0
);

-- One row per duty that the fleet does once. Every write of a duty checks holder and term.
create table tenure.leases (
    name          text        not null primary key,
    holder        uuid        not null,
    term          bigint      not null,
    acquired_at   timestamptz not null,
    heartbeat_at  timestamptz not null,
    expires_at    timestamptz not null,
    metadata      jsonb       not null default '{}'
) with (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0
);

-- What is known of a queue beyond its jobs; a queue without a row is simply not paused.
create table tenure.queues (
    name          text        not null primary key,
    paused_at     timestamptz,
    paused_by     text,
    pause_reason  text,
    -- Grows whenever jobs come back to their old place, below the cursors of the workers: they look again.
    returns       bigint      not null default 0
);

create view tenure.all_jobs as
select j.id, j.kind, j.queue, j.state, j.priority, j.capability, j.attempt, j.max_attempts, j.crashes, j.fence, j.claim_id, j.worker_id,
       j.enqueued_at, j.run_at, j.started_at, null::timestamptz as finished_at, j.error, j.input, null::jsonb as output,
       j.worker_id as lease_owner, least(w.expires_at, j.lease_until) as lease_expires_at, w.heartbeat_at
  from tenure.jobs j
  left join tenure.workers w on w.id = j.worker_id
union all
select h.id, h.kind, h.queue, h.state, h.priority, h.capability, h.attempt, h.max_attempts, h.crashes, h.fence, h.claim_id, h.worker_id,
       h.enqueued_at, null, h.started_at, h.finished_at, h.error, h.input, h.output,
       null, null, null
  from tenure.history h;

-- A UUIDv7 for callers that bring no id of their own (psql, triggers, other languages).
create function tenure.uuid7() returns uuid
language sql volatile parallel safe
as $$
    select encode(
        set_bit(set_bit(
            overlay(uuid_send(gen_random_uuid())
                placing substring(int8send(floor(extract(epoch from clock_timestamp()) * 1000)::bigint) from 3)
                from 1 for 6),
            52, 1), 53, 1),
        'hex')::uuid
$$;

-- enqueue: the one door by which jobs come in, for every driver and language.
--   jobs   a JSON array of objects: kind (required), input, queue, priority, capability, max_attempts, id, and
--          delay (seconds) or run_at for later. What is left out takes its default.
--   again  true when the outcome of an earlier call with the same ids is unknown: what that call did write, even if it has
--          finished since, is not written a second time.
-- Returns one row per job written or met, in the given order; existed tells that it was there before.
create function tenure.enqueue(jobs text, again boolean default false)
returns table (id uuid, existed boolean)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    fresh text;
begin
    if not again then
        -- The transaction id must be older than any position it takes: workers rely on that order to know
        -- below which position nothing can appear any more.
        perform pg_current_xact_id();
        return query
        insert into tenure.jobs (id, state, position, run_at, kind, queue, priority, capability, max_attempts, input)
        select coalesce(g.id, tenure.uuid7()),
               case when due.later is null then 'pending' else 'scheduled' end,
               case when due.later is null then nextval('tenure.job_position') else 0 end,
               due.later,
               g.kind, coalesce(g.queue, 'default'), coalesce(g.priority, 50::smallint), g.capability,
               coalesce(g.max_attempts, 3), coalesce(g.input, '{}')
          from jsonb_to_recordset(jobs::jsonb) as g(id uuid, kind text, queue text, priority smallint, capability text,
               max_attempts integer, delay double precision, run_at timestamptz, input jsonb)
         cross join lateral (select coalesce(g.run_at, clock_timestamp() + make_interval(secs => g.delay)) as run_at) as given
         cross join lateral (select case when given.run_at > clock_timestamp() then given.run_at end as later) as due
        returning jobs.id, false;
        return;
    end if;

    if exists (select from json_to_recordset(jobs::json) as g(id uuid) where g.id is null) then
        raise exception 'enqueue again needs the ids of the call that it repeats' using errcode = 'invalid_parameter_value';
    end if;
    loop
        select coalesce(json_agg(g.job order by g.place), '[]')::text into fresh
          from (select distinct on (e.job ->> 'id') e.job, e.place
                  from json_array_elements(jobs::json) with ordinality as e(job, place)
                 where (select j.id from tenure.jobs j where j.id = (e.job ->> 'id')::uuid limit 1) is null
                   and (select h.id from tenure.history h where h.id = (e.job ->> 'id')::uuid limit 1) is null
                 order by e.job ->> 'id', e.place) g;
        begin
            perform tenure.enqueue(fresh, false);
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
          from json_to_recordset(fresh::json) as g(id uuid)
         cross join lateral (select h.id from tenure.history h where h.id = g.id limit 1) h
         cross join lateral (select j.ctid as place from tenure.jobs j where j.id = g.id limit 1) j));
    return query
    select (e.job ->> 'id')::uuid,
           (e.job ->> 'id')::uuid not in (select f.id from json_to_recordset(fresh::json) as f(id uuid))
      from json_array_elements(jobs::json) with ordinality as e(job, place)
     order by e.place;
end
$$;

-- keep_history: makes the partitions of today and the next days, drops those whose last day is older than keep.
-- New ones are attached, which does not stop readers or settling. A lock that is not had at once, because somebody reads
-- history for long, is left for the next time.
create function tenure.keep_history(days_ahead integer, keep interval)
returns table (made integer, dropped integer)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '500ms'
set timezone = 'UTC'
as $$
declare
    today date := (clock_timestamp() at time zone 'UTC')::date;
    partition_name text;
    partition_day date;
begin
    made := 0;
    dropped := 0;
    begin
        for partition_day in select today + n from generate_series(0, days_ahead) as n loop
            partition_name := 'history_' || to_char(partition_day, 'YYYYMMDD');
            continue when to_regclass(format('tenure.%I', partition_name)) is not null;
            execute format('create table tenure.%I (like tenure.history including all)', partition_name);
            -- What was caught while there was no such partition moves to where it belongs.
            execute format('with caught as (delete from tenure.history_default where finished_at >= %L and finished_at < %L returning *)
                            insert into tenure.%I select * from caught',
                           partition_day::timestamptz, (partition_day + 1)::timestamptz, partition_name);
            execute format('alter table tenure.history attach partition tenure.%I for values from (%L) to (%L)',
                           partition_name, partition_day::timestamptz, (partition_day + 1)::timestamptz);
            made := made + 1;
        end loop;
        delete from tenure.history_default where finished_at < (clock_timestamp() - keep)::date;
        for partition_name in
            select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
             where i.inhparent = 'tenure.history'::regclass and c.relname ~ '^history_[0-9]{8}$'
               and to_date(right(c.relname, 8), 'YYYYMMDD') + 1 <= (clock_timestamp() - keep)::date
        loop
            execute format('drop table tenure.%I', partition_name);
            dropped := dropped + 1;
        end loop;
    exception when lock_not_available then
        made := 0;
        dropped := 0;
    end;
    return next;
end
$$;

select tenure.keep_history(7, interval '7 days');
