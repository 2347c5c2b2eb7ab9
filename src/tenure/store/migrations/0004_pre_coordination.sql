-- What coordination needs: counts by the minute, latencies, retention by kind.

-- Latencies are counted by buckets that grow by the square root of two: bucket b holds what took at most 2 ^ (b / 2) ms. So a
-- percentile read from them is right to within a fifth, and a bucket of an hour is the sum of those of its minutes.
create function tenure.latency_bucket(took interval) returns smallint
language sql immutable parallel safe
return case when took <= interval '1 ms' then 0 else least(63, ceil(2 * ln(extract(epoch from took)::float8 * 1000) / ln(2::float8))) end::smallint;

alter table tenure.tallies
    add column waited_bucket smallint,
    add column ran_bucket    smallint;

-- As counters, by the minute, for a day.
create table tenure.minutes (
    minute timestamptz not null,
    queue  text        not null,
    kind   text        not null,
    what   text        not null,
    jobs   bigint      not null,
    waited interval    not null default '0',
    ran    interval    not null default '0',
    constraint minutes_pkey primary key (minute, queue, kind, what)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

-- How long jobs that finished had waited and ran: by the minute for a day, by the hour for as long as counters.
create table tenure.latencies (
    at      timestamptz not null,
    span    text        not null,
    queue   text        not null,
    kind    text        not null,
    measure text        not null,
    bucket  smallint    not null,
    jobs    bigint      not null,
    constraint latencies_pkey primary key (span, at, queue, kind, measure, bucket),
    constraint latencies_span check (span in ('minute', 'hour') and measure in ('waited', 'ran'))
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

-- For how long finished jobs of a kind are kept, where that is not as long as all others.
create table tenure.retentions (
    kind text     not null primary key,
    keep interval not null
);

-- enqueue counts what came in. Otherwise it is as it was.
create or replace function tenure.enqueue(jobs text, again boolean default false, borrowed boolean default false)
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
    with put as (
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
