-- Limits: how many jobs of a kind or queue run at a time, how many start in a while, and whose turn it is.
--
-- A job under a limit carries a gate: the names of the groups it belongs to, such as `kind:mail/tenant_id=42`. Jobs without one
-- never touch any of this. How many run is counted from the live claims, so there is no counter that could be wrong.

alter table tenure.jobs add column gate text collate "C";

-- The claim's own indexes, without what stands at a gate. The old ones serve older workers until the post file takes them away.
create index jobs_open on tenure.jobs (queue, priority desc, position) where state = 'pending' and gate is null;
create index jobs_open_suspect on tenure.jobs (queue, priority desc, position)
    where state = 'pending' and crashes >= 2 and gate is null;
-- Found gate by gate, and within a gate by what a worker must be able to do: nobody walks over jobs that are not for them.
create index jobs_gated on tenure.jobs (queue, gate, kind, coalesce(capability, ''), (crashes >= 2), priority desc, position)
    where state = 'pending' and gate is not null;
create index jobs_gated_suspect on tenure.jobs (queue) where state = 'pending' and gate is not null and crashes >= 2;
-- The live claims that count.
create index jobs_gated_held on tenure.jobs (gate) where gate is not null and worker_id is not null;

-- One row per limited kind or queue. Claims under a limit hold its row: one at a time.
create table tenure.limits (
    name        text        not null primary key,
    -- What the code says, and what was said at run time, which wins, word by word; null there takes a bound away.
    declared    jsonb,
    override    jsonb,
    declared_at timestamptz,
    override_at timestamptz,
    override_by text,
    rules       jsonb       not null generated always as (
        jsonb_strip_nulls(coalesce(declared, '{}') || coalesce(override, '{}'))) stored,
    constraint limits_name check (name ~ '^(kind|queue):.' and name !~ E'\n')
) with (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0
);

-- What holds at present. rate and rate_per_key are [starts, seconds]; stem is what the names of its groups begin with.
create view tenure.limit_rules as
select l.name,
       (l.rules ->> 'concurrency')::integer as concurrency,
       (l.rules ->> 'concurrency_per_key')::integer as concurrency_per_key,
       (l.rules #>> '{rate,0}')::integer as rate,
       (l.rules #>> '{rate,1}')::double precision as rate_seconds,
       (l.rules #>> '{rate_per_key,0}')::integer as rate_per_key,
       (l.rules #>> '{rate_per_key,1}')::double precision as rate_per_key_seconds,
       l.rules ->> 'key' as key,
       l.rules ->> 'otherwise' as otherwise,
       coalesce((l.rules ->> 'fair')::boolean, false) as fair,
       case when l.rules ? 'key' then l.name || '/' || (l.rules ->> 'key') || '=' else l.name end as stem
  from tenure.limits l
 where l.rules ?| array['concurrency', 'concurrency_per_key', 'rate', 'rate_per_key', 'fair'];

-- Grows with every change of a limit, so that each claim can tell whether its worker knows them all.
create table tenure.limit_changes (
    id          boolean     not null primary key default true,
    version     bigint      not null default 0,
    constraint limit_changes_single check (id)
);
insert into tenure.limit_changes default values;

-- Starts under a rate, some at a time; forgotten when no window reaches back to them any more.
create table tenure.starts (
    gate        text collate "C" not null,
    began       timestamptz not null,
    ended       timestamptz not null,
    forget_at   timestamptz not null,
    jobs        integer     not null,
    constraint starts_pkey primary key (gate, began)
) with (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0
);
create index starts_forget on tenure.starts (forget_at);

-- gate_line: the group of a job under one limit. Line breaks separate the groups of a gate; a long key is cut, but stays itself.
create function tenure.gate_line(name text, key text, otherwise text, input jsonb) returns text
language sql immutable parallel safe
as $$
    select name || case when key is null then ''
                        else '/' || key || '=' || translate(case when length(w.word) <= 100 then w.word
                                                                 else left(w.word, 60) || '~' || md5(w.word) end, E'\r\n', '  ') end
      from (select coalesce(input #>> string_to_array(key, '.'), otherwise, '') as word) w
$$;

-- gate_of: the groups to which such a job belongs at present, the kind's before the queue's; null: it is not limited.
create function tenure.gate_of(kind text, queue text, input jsonb) returns text
language sql stable
as $$
    select string_agg(tenure.gate_line(r.name, r.key, r.otherwise, input), E'\n' order by r.name)
      from tenure.limit_rules r
     where r.name in ('kind:' || kind, 'queue:' || queue)
$$;

create or replace view tenure.all_jobs as
select j.id, j.kind, j.queue, j.state, j.priority, j.capability, j.attempt, j.max_attempts, j.crashes, j.fence, j.claim_id, j.worker_id,
       j.enqueued_at, j.run_at, j.started_at, null::timestamptz as finished_at, j.error, j.input, null::jsonb as output,
       j.worker_id as lease_owner, least(w.expires_at, j.lease_until) as lease_expires_at, w.heartbeat_at,
       j.timeout, j.key, j.parent_id, j.enqueued_by, j.auth, j.meta, j.gate
  from tenure.jobs j
  left join tenure.workers w on w.id = j.worker_id
union all
select h.id, h.kind, h.queue, h.state, h.priority, h.capability, h.attempt, h.max_attempts, h.crashes, h.fence, h.claim_id, h.worker_id,
       h.enqueued_at, h.run_at, h.started_at, h.finished_at, h.error, h.input, h.output,
       null, null, null,
       h.timeout, h.key, h.parent_id, h.enqueued_by, h.auth, h.meta, null
  from tenure.history h;

-- enqueue: as it was; what came in is counted, and a job that is limited gets its gate here, whoever hands it in.
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
               g.kind, coalesce(g.queue, 'default'), coalesce(g.priority, 50::smallint), g.capability,
               coalesce(g.max_attempts, 3), g.timeout, coalesce(g.input, '{}'),
               g.key, g.parent, coalesce(g.by, session_user::text), g.auth, g.meta,
               -- Who is not limited pays for a look at a short list, and for nothing while there are no limits at all.
               case when limited <> '{}' and ('kind:' || g.kind = any (limited) or 'queue:' || coalesce(g.queue, 'default') = any (limited))
                    then tenure.gate_of(g.kind, coalesce(g.queue, 'default'), coalesce(g.input, '{}')) end
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

-- How much work waits, as one number: for whoever starts and ends machines (KEDA, an autoscaler of your own).
-- backlog: jobs that want a worker now, at most 10000 of them.
--   queue    of this queue only; else of all. A paused queue wants nothing.
--   running  also counts the jobs that are being run, so that machines are not taken away while they work.
-- Counts what is pending, and what is due and not yet promoted: when there is no worker at all, nobody promotes it. Of jobs under a
-- limit, no more than may run at a time.
-- Goes by indexes and looks at no more than 10000 jobs of each sort, so its cost does not grow with the backlog.
create function tenure.backlog(queue text default null, running boolean default false) returns bigint
language sql stable security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
    with recursive named(name) as (
        select coalesce(backlog.queue, (
            select j.queue from tenure.jobs j where j.state = 'pending' and j.gate is null order by j.queue limit 1))
        union all
        select (select j.queue from tenure.jobs j where j.state = 'pending' and j.gate is null and j.queue > n.name order by j.queue limit 1)
          from named n
         where n.name is not null and backlog.queue is null),
    gated(name) as (
        select coalesce(backlog.queue, (
            select j.queue from tenure.jobs j where j.state = 'pending' and j.gate is not null order by j.queue limit 1))
        union all
        select (select j.queue from tenure.jobs j where j.state = 'pending' and j.gate is not null and j.queue > n.name order by j.queue limit 1)
          from gated n
         where n.name is not null and backlog.queue is null),
    awake as (
        select n.name from named n left join tenure.queues q on q.name = n.name where n.name is not null and q.paused_at is null),
    awake_gated as (
        select n.name from gated n left join tenure.queues q on q.name = n.name where n.name is not null and q.paused_at is null)
    select least(10000,
        (select count(*)
           from (select from awake a
                  cross join lateral (
                    select from tenure.jobs j where j.state = 'pending' and j.gate is null and j.queue = a.name limit 10000) p
                  limit 10000) p)
      + (select coalesce(sum(greatest(0, least(w.waiting, r.concurrency - h.held))), 0)
           from (select r.name, r.concurrency, r.stem, case when r.key is null then r.stem || chr(11) else left(r.stem, -1) || '>' end as after
                   from tenure.limit_rules r) r
          cross join lateral (
            select count(*) as waiting
              from (select from awake_gated a
                     cross join lateral (
                        select from tenure.jobs j
                         where j.state = 'pending' and j.gate is not null and j.queue = a.name and j.gate >= r.stem and j.gate < r.after
                         limit 10000) p
                     limit 10000) p) w
          cross join lateral (
            select count(*) as held from tenure.jobs j
             where j.gate is not null and j.worker_id is not null and j.gate >= r.stem and j.gate < r.after and r.concurrency is not null) h
          where w.waiting > 0)
      + (select count(*)
           from (select j.queue from tenure.jobs j
                  where j.state in ('scheduled', 'retry') and j.run_at <= clock_timestamp()
                  order by j.run_at limit 10000) d
           left join tenure.queues q on q.name = d.queue
          where (backlog.queue is null or d.queue = backlog.queue) and q.paused_at is null)
      + (select count(*)
           from (select j.queue from tenure.jobs j where j.worker_id is not null and backlog.running limit 10000) h
          where backlog.queue is null or h.queue = backlog.queue))
$$;

-- Where grants were narrowed before, they stay narrow: whoever may run the other functions of workers may run these.
do $$
declare
    grants aclitem[] := (select p.proacl from pg_proc p where p.oid = 'tenure.keep_history(integer, interval)'::regprocedure);
    grantee text;
begin
    if grants is null then
        return;
    end if;
    revoke all on function tenure.gate_line(text, text, text, jsonb), tenure.gate_of(text, text, jsonb) from public;
    for grantee in
        select case when a.grantee = 0 then 'public' else a.grantee::regrole::text end
          from aclexplode(grants) as a where a.privilege_type = 'EXECUTE'
    loop
        execute format('grant execute on function tenure.gate_line(text, text, text, jsonb), tenure.gate_of(text, text, jsonb) to %s', grantee);
    end loop;
end
$$;
