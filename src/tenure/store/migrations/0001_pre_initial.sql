-- All tables of the first version, each with its indexes. Views and functions: see views/ and functions/, which hold one current
-- definition of each.

-- The order key: taken when a job becomes pending, so FIFO means "by the time it became ready".
-- Never cached per session: a cache would give late callers early positions.
create sequence tenure.job_position as bigint cache 1;

-- Live jobs only. Finishing moves the row to tenure.history, so this table stays as small as the backlog.
-- A claim changes no column that an index names, not even in its condition, so that PostgreSQL writes the new version of the row to the same
-- page and no index learns of it (a HOT update). That is why no index mentions state or claim_id: they go by position instead.
create table tenure.jobs (
    id            uuid        not null,
    -- What a claim writes comes first, side by side: PostgreSQL logs an update from the first byte that changes to the last.
    claim_id      uuid,
    fence         bigint      not null default 0,
    attempt       integer     not null default 0,
    state         text        not null,
    -- Above 0: the place in the queue of a pending or running job. 0: it waits for its time (run_at). -1: a dead letter.
    -- -2: it waits for something else.
    position      bigint      not null default 0,
    enqueued_at   timestamptz not null default clock_timestamp(),
    run_at        timestamptz,
    -- A job that was never claimed is canceled at this time. Null: it waits for as long as it has to.
    expires_at    timestamptz,
    -- When its last run began. Of a current run: see tenure.claims.
    started_at    timestamptz,
    lease_until   timestamptz,
    max_attempts  integer     not null default 3,
    priority      smallint    not null default 50,
    crashes       smallint    not null default 0,
    kind          text        not null,
    queue         text        not null default 'default',
    capability    text,
    error         text,
    input         jsonb       not null default '{}',
    timeout       double precision,
    key           text,
    parent_id     uuid,
    -- The chain that the job is a link of. Null: it started its own chain, whose id is the job's id.
    chain_id      uuid,
    -- Jobs wait for the end of its chain: the statement that ends it adds a row to chain_endings. Null: none. In no index, so that
    -- setting it stays on the page (a HOT update).
    dependants    boolean,
    enqueued_by   text,
    auth          jsonb,
    -- Set by the user, as is auth.
    meta          jsonb,
    -- Set by Tenure: schedule (its name, the planned time and whether it is late), retry_of (the finished job that this one repeats),
    -- headers (such as the context of a trace) and others, see model/system_data.py.
    system        jsonb,
    -- The limit groups of the job, one per line, such as `kind:mail/tenant_id=42`. Null: it is not limited, and limits cost it nothing.
    limit_group   text        collate "C",
    -- The same while it runs. The number of running jobs is counted from these: a counter could be wrong.
    held_group    text        collate "C",
    constraint jobs_pkey primary key (id),
    -- Short, because each statement that writes jobs pays for the preparation of its checks.
    constraint jobs_state check (
        case when position > 0 then (state = 'running' and claim_id is not null) or (state = 'pending' and claim_id is null)
             when claim_id is not null then false
             when position = 0 then run_at is not null and state in ('scheduled', 'retry', 'waiting')
             when position = -1 then state = 'dead_letter'
             else state in ('blocked', 'waiting') end),
    constraint jobs_bounds check (priority between 0 and 100 and attempt >= 0 and max_attempts >= 1 and kind <> '' and queue <> '')
) with (
    -- Room on the page for the claimed version, which is 16 bytes longer: the update stays on its page and writes less WAL.
    fillfactor = 45,
    -- A queue makes dead rows faster than any scale factor detects.
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 100000,
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 10000,
    autovacuum_vacuum_cost_delay = 0
);

-- The claim reads these two, without the jobs under a limit. They also contain the running jobs, which are few.
create index jobs_queued on tenure.jobs (queue, priority desc, position) where position > 0 and limit_group is null;
-- Jobs that were in two crashes already: they run alone, so that only their own crash can dead-letter them.
create index jobs_suspect on tenure.jobs (queue, priority desc, position) where position > 0 and crashes >= 2 and limit_group is null;
-- Jobs under a limit are found by their groups, and within a group by what a worker must be able to do: no worker reads jobs that it
-- cannot run.
create index jobs_limited on tenure.jobs (queue, limit_group, kind, coalesce(capability, ''), (crashes >= 2), priority desc, position)
    where position > 0 and limit_group is not null and held_group is null;
create index jobs_limited_suspect on tenure.jobs (queue) where position > 0 and limit_group is not null and held_group is null and crashes >= 2;
-- The live claims that count towards a limit.
create index jobs_limited_held on tenure.jobs (held_group) where held_group is not null;
create index jobs_due on tenure.jobs (run_at) where position = 0;
-- Counts the due jobs of one queue for tenure.backlog(). By jobs_due, those of other queues would have to be read first, and no process
-- promotes those while all workers are scaled to zero. That queue is not null is always true: it keeps this index from statements that do
-- not name a queue, for which it has the wrong order.
create index jobs_due_queue on tenure.jobs (queue, run_at) where position = 0 and queue is not null;
create index jobs_leased on tenure.jobs (lease_until) where lease_until is not null;
create index jobs_dead on tenure.jobs (kind, id) where position = -1;
create index jobs_parent on tenure.jobs (parent_id, id) where parent_id is not null;
-- Links of a chain after the first.
create index jobs_chain on tenure.jobs (chain_id, id) where chain_id is not null;
-- Finds jobs that have expired.
create index jobs_expiring on tenure.jobs (expires_at) where expires_at is not null;
-- Counts jobs that are blocked, and workflows that wait for something else than a time.
create index jobs_waiting on tenure.jobs (queue) where position = -2;
-- Counts workflows that are held until a person decides. Other jobs that wait, of which there may be a million, are not in it.
create index jobs_held on tenure.jobs (kind) where position = -2 and system ? 'held';

-- One row per claim: which jobs a worker took, and when. It is how the jobs of a worker are found, and it stays for as long as one of
-- them may be held under it.
create table tenure.claims (
    id         uuid        not null primary key,
    worker_id  uuid        not null,
    at         timestamptz not null default clock_timestamp(),
    job_ids    uuid[]      not null
) with (
    -- Kept in the row, uncompressed: it is written once and read rarely.
    toast_tuple_target = 8160,
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 100000,
    autovacuum_vacuum_cost_delay = 0
);
alter table tenure.claims alter column job_ids set storage main;
create index claims_worker on tenure.claims (worker_id);

-- Finished jobs, one partition per day; retention drops partitions.
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
    run_at        timestamptz,
    timeout       double precision,
    key           text,
    parent_id     uuid,
    chain_id      uuid,
    -- The next link of the chain, which was created when this one completed.
    next_id       uuid,
    enqueued_by   text,
    auth          jsonb,
    meta          jsonb,
    system        jsonb,
    constraint history_final_state check (state in ('completed', 'failed', 'canceled'))
) partition by range (finished_at);

create index history_id on tenure.history (id);
-- Lists are sorted by id, newest first, within a kind. The rare cases (failed jobs, children, keys) have indexes that cost other
-- rows nothing.
create index history_kind on tenure.history (kind, id);
create index history_not_completed on tenure.history (state, id) where state <> 'completed';
create index history_parent on tenure.history (parent_id, id) where parent_id is not null;
create index history_key on tenure.history (kind, key, id) where key is not null;
create index history_chain on tenure.history (chain_id, id) where chain_id is not null;

-- Holds the rows of a day that has no partition yet: late cleaning must not stop the work.
create table tenure.history_default partition of tenure.history default;

-- Replica identities, for publications of all tables: without one PostgreSQL refuses every update and delete of a published table.
-- history, incidents and tallies have no primary key, and an index for this would cost every settled job a write. `full` costs nothing
-- unless changes are decoded logically.
alter table tenure.history replica identity full;
alter table tenure.history_default replica identity full;

-- One row per process that runs handlers. The lease of all jobs that it holds is this row's expires_at.
create table tenure.workers (
    id             uuid        not null primary key,
    supervisor_id  uuid        not null,
    host           text        not null,
    pid            integer     not null,
    queues         jsonb       not null,
    kinds          jsonb       not null,
    capabilities   jsonb       not null,
    concurrency    integer     not null,
    -- Tenure's own, and that of the code that it runs, as the app names it (setting `app_version`). Null: the app names none.
    version        text        not null,
    app_version    text,
    started_at     timestamptz not null default clock_timestamp(),
    heartbeat_at   timestamptz not null default clock_timestamp(),
    expires_at     timestamptz not null,
    -- Once set, the worker can neither claim nor renew. The row is deleted when its jobs have been requeued.
    died_at        timestamptz,
    died_how       text,
    -- Once set, the worker claims nothing until it is null again. It renews its lease and finishes what it runs.
    draining_at    timestamptz,
    -- Megabytes of resident memory at the last renewal. Null: its supervisor has not measured it yet, or it runs in a process of yours.
    memory_mb      real,
    name           text,
    -- The newest schema version that its code knows: post migrations wait for older ones.
    schema_version integer,
    constraint workers_died_how check (died_how in ('crashed', 'expired', 'stopped'))
) with (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0
);

-- One row per duty that exactly one leader performs. Every write of a duty checks holder and term.
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

-- Facts about a queue besides its jobs. A queue without a row is not paused.
create table tenure.queues (
    name          text        not null primary key,
    paused_at     timestamptz,
    paused_by     text,
    pause_reason  text,
    -- Grows whenever jobs are requeued at their old position, below the cursors of the workers: they look again.
    returns       bigint      not null default 0
);

-- Idempotency: which job holds a key. The primary key makes two jobs for one key impossible, in any order of commits.
create table tenure.keys (
    kind       text        not null,
    key        text        not null,
    job_id     uuid        not null,
    scope      text        not null,
    taken_at   timestamptz not null default clock_timestamp(),
    expires_at timestamptz,
    -- Of the input, to detect another input under the same key.
    digest     text        not null,
    constraint keys_pkey primary key (kind, key),
    constraint keys_scope check (scope in ('live', 'window', 'forever') and (scope = 'window') = (expires_at is not null)),
    constraint keys_length check (key <> '' and length(key) <= 512)
);
create index keys_expires on tenure.keys (expires_at) where expires_at is not null;

-- The latest progress of each job. Narrow, and no indexed column ever changes.
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

-- Log lines of a run, several per row; only the last ones of each run are kept.
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

-- Deviations from the plan: failed attempts, crashes, lost leases, snoozes, cancellations, replays. A job that simply completes has
-- none; everything else is in its own row.
create table tenure.incidents (
    job_id     uuid        not null,
    at         timestamptz not null default clock_timestamp(),
    what       text        not null,
    attempt    integer,
    fence      bigint,
    worker_id  uuid,
    -- The name of the worker, or its host and process id: its own row is deleted when its jobs have been requeued. Null: see
    -- tenure.workers.
    worker     text,
    started_at timestamptz,
    next_at    timestamptz,
    by         text,
    error      text
);
create index incidents_job on tenure.incidents (job_id, at);
create index incidents_at on tenure.incidents (at);
alter table tenure.incidents replica identity full;

-- Jobs that a client waits for: their worker notifies it when they change state. A job without a row notifies no one, at no cost.
create table tenure.watches (
    job_id uuid        not null primary key,
    until  timestamptz not null
);

-- Counts of enqueued and settled jobs: one row per statement and kind, merged into counters by the leader.
create table tenure.tallies (
    at            timestamptz not null default clock_timestamp(),
    queue         text        not null,
    kind          text        not null,
    what          text        not null,
    jobs          integer     not null,
    waited        interval,
    ran           interval,
    waited_bucket smallint,
    ran_bucket    smallint
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
alter table tenure.tallies replica identity full;

-- Totals per hour.
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

-- Totals per minute, kept for a day.
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

-- How long finished jobs had waited and run: per minute for a day, per hour for eight days, per day for as long as counters. Each job is
-- counted in all three, so that no query reads many rows.
create table tenure.latencies (
    at      timestamptz not null,
    span    text        not null,
    queue   text        not null,
    kind    text        not null,
    measure text        not null,
    bucket  smallint    not null,
    jobs    bigint      not null,
    constraint latencies_pkey primary key (span, at, queue, kind, measure, bucket),
    constraint latencies_span check (span in ('minute', 'hour', 'day') and measure in ('waited', 'ran'))
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

-- The fleet once a minute, kept for a day. `busy`: jobs that run. `oldest_seconds`: how long the first pending job of the queues that are
-- not paused has waited. `queues` has those with pending jobs: [{"name", "pending", "oldest"}], the hundred that wait longest.
create table tenure.fleet_minutes (
    minute         timestamptz not null,
    workers        integer     not null,
    slots          integer     not null,
    busy           integer     not null,
    pending        bigint      not null,
    oldest_seconds real        not null,
    memory_mb      real,
    app_versions   jsonb       not null,
    queues         jsonb       not null,
    constraint fleet_minutes_pkey primary key (minute)
);

-- How long finished jobs of a kind are kept, if that differs from the default.
create table tenure.retentions (
    kind text     not null primary key,
    keep interval not null
);

create table tenure.schedules (
    name           text        not null primary key,
    -- The app whose code declares it. Null: created by hand.
    owner          text,
    kind           text        not null,
    cron           text,
    every          double precision,
    timezone       text        not null,
    input          jsonb       not null,
    queue          text        not null,
    priority       smallint    not null,
    capability     text,
    max_attempts   integer     not null,
    timeout        double precision,
    -- Seconds after which a job of the schedule is canceled if it was not started. Null: it waits for as long as it has to.
    expires        double precision,
    overlap        text        not null,
    catch_up       text        not null,
    catch_up_limit integer     not null,
    jitter         double precision not null,
    created_at     timestamptz not null default clock_timestamp(),
    -- When the definition changed, and who changed it.
    changed_at     timestamptz not null default clock_timestamp(),
    changed_by     text,
    paused_at      timestamptz,
    paused_by      text,
    pause_reason   text,
    retired_at     timestamptz,
    -- All planned times up to this one are recorded, or are not this schedule's.
    since          timestamptz not null default clock_timestamp(),
    -- The next planned time. Null: the leader has not computed it yet.
    next_at        timestamptz,
    last_at        timestamptz,
    -- Changes with every write. A decision about a schedule names the version that it is based on.
    version        uuid        not null default gen_random_uuid(),
    -- All kinds of the app that declares it: they distinguish two apps of the same name.
    app_kinds      text[],
    constraint schedules_times check ((cron is null) <> (every is null) and every >= 1 and jitter >= 0),
    constraint schedules_policies check (overlap in ('skip', 'queue', 'allow') and catch_up in ('none', 'one', 'all') and catch_up_limit >= 1),
    -- The bounds of a job: a schedule whose jobs would be refused is refused itself.
    constraint schedules_job check (name <> '' and kind <> '' and queue <> '' and priority between 0 and 100 and max_attempts >= 1),
    -- Longer names would not fit an index or a notification.
    constraint schedules_names check (octet_length(name) <= 200 and octet_length(kind) <= 200 and octet_length(queue) <= 200
        and (capability is null or octet_length(capability) <= 200))
) with (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0
);
create index schedules_next on tenure.schedules (next_at nulls first) where paused_at is null and retired_at is null;

-- One row for each planned time that has passed; for consecutive missed times, one row for all of them.
create table tenure.ticks (
    schedule       text        not null,
    planned_at     timestamptz not null,
    -- The last of the times that were missed together, and their number.
    until          timestamptz,
    times          integer     not null default 1,
    outcome        text        not null,
    job_id         uuid,
    recorded_at    timestamptz not null default clock_timestamp(),
    -- Who requested a run that was not planned.
    by             text,
    constraint ticks_pkey primary key (schedule, planned_at),
    constraint ticks_outcome check (outcome in ('enqueued', 'skipped', 'queued', 'missed') and (outcome = 'enqueued') = (job_id is not null))
);
-- Finds the jobs of a schedule that may still be live, however many times were skipped since.
create index ticks_jobs on tenure.ticks (schedule, planned_at) where job_id is not null;
create index ticks_queued on tenure.ticks (schedule, planned_at) where outcome = 'queued';
create index ticks_recorded on tenure.ticks (recorded_at);

-- Which schedules the code of each supervisor declares. A schedule is retired when no living supervisor declares it.
create table tenure.declarations (
    supervisor_id uuid        not null primary key,
    owner         text        not null,
    kinds         text[]      not null,
    schedules     text[]      not null,
    declared_at   timestamptz not null default clock_timestamp()
);

-- One row per limited kind or queue. A claim under a limit locks its row, so there is one such claim at a time.
create table tenure.limits (
    name        text        not null primary key,
    -- declared is set by the code, override at run time. Each key of override wins over that of declared; null removes a bound.
    declared    jsonb,
    override    jsonb,
    declared_at timestamptz,
    override_at timestamptz,
    override_by text,
    rules       jsonb       not null generated always as (
        jsonb_strip_nulls(coalesce(declared, '{}') || coalesce(override, '{}'))) stored,
    constraint limits_name check (name ~ '^(kind|queue):.' and name !~ E'\n'),
    -- `kind:` or `queue:`, and a name of at most 200 bytes.
    constraint limits_length check (octet_length(name) <= 206)
) with (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0
);

-- Its version grows with every change of a limit, so that each claim can check whether its worker knows the current limits.
create table tenure.limit_changes (
    id          boolean     not null primary key default true,
    version     bigint      not null default 0,
    constraint limit_changes_single check (id)
);
insert into tenure.limit_changes default values;

-- Starts under a rate limit, several per row; deleted when no window includes them any more.
create table tenure.starts (
    limit_group text collate "C" not null,
    began       timestamptz not null,
    ended       timestamptz not null,
    forget_at   timestamptz not null,
    jobs        integer     not null,
    constraint starts_pkey primary key (limit_group, began)
) with (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0
);
create index starts_forget on tenure.starts (forget_at);

-- What the code of workers declares about each kind: enough to check and enqueue its jobs in processes that do not import the handlers.
create table tenure.kinds (
    name        text        not null primary key,
    -- The app whose code declared it last.
    app         text        not null,
    declared_at timestamptz not null default clock_timestamp(),
    -- Queue, priority, attempts, how its keys are made, and the JSON Schemas of input and output; see model/published_kind.py.
    definition  jsonb       not null
);

-- Jobs that wait for other chains, from their enqueue until the cleaner removes the row after they have ended.
create table tenure.blocked (
    job_id     uuid    not null primary key,
    -- How many chains it waits for, and how many of them have not ended. 0: the resolver may move the job. Null: it was moved.
    total      integer not null,
    missing    integer,
    on_failure text    not null default 'cancel',
    -- The first chain that did not complete.
    failed     uuid,
    -- Why it can never be unblocked.
    error      text,
    -- A group to which members are still being added (app.map): that counts as one that is missing.
    open       boolean not null default false,
    constraint blocked_missing check (missing >= 0),
    constraint blocked_on_failure check (on_failure in ('cancel', 'run', 'wait'))
);
create index blocked_ready on tenure.blocked (job_id) where missing = 0;

-- One row for each chain that a job waits for.
create table tenure.blockers (
    chain_id uuid    not null,
    job_id   uuid    not null,
    -- The order of the call, from 1: that of ctx.blockers.
    number   integer not null,
    -- The end of the chain cannot be missed any more: its live link has the flag `dependants`, or chain_endings has its ending.
    armed    boolean not null default false,
    -- The chain has ended, and is not counted in `missing` any more.
    met      boolean not null default false,
    -- A failure does not count as the end of the chain (on_failure = wait).
    waits    boolean not null default false,
    constraint blockers_pkey primary key (chain_id, job_id, number)
);
create index blockers_job on tenure.blockers (job_id, number);
create index blockers_unarmed on tenure.blockers (job_id) where not armed;
create index blockers_open on tenure.blockers (chain_id, job_id) where armed and not met;

-- The ends of chains that jobs wait for. Outputs are kept here for as long as such a job exists, even if history is dropped before.
create table tenure.chain_endings (
    chain_id uuid        not null primary key,
    -- The last link.
    job_id   uuid,
    kind     text,
    state    text        not null,
    ended_at timestamptz not null default clock_timestamp(),
    output   jsonb,
    error    text,
    resolved boolean     not null default false,
    constraint chain_endings_state check (state in ('completed', 'failed', 'canceled', 'dead_letter', 'deleted'))
);
create index chain_endings_unresolved on tenure.chain_endings (chain_id) where not resolved;

-- One row per step of a workflow, found by its name when the workflow runs again. Names are unique within a run: the second step of a
-- name is `name#2`, and steps of tasks that the workflow started begin with the number of the task.
create table tenure.steps (
    job_id     uuid        not null,
    name       text        not null,
    -- The order in which steps were recorded or began to wait.
    number     integer     not null,
    -- step, value, transaction, sleep, wait, event, call, start, patch, status; on_rollback (an undo is registered), undo, rollback
    what       text        not null,
    -- done, failed; retry: it failed and is tried again; open: the workflow waits for it.
    state      text        not null,
    output     jsonb,
    error      text,
    attempts   integer     not null default 1,
    started_at timestamptz,
    ended_at   timestamptz,
    -- When a wait ends: the end of a sleep, a timeout, the next try.
    due_at     timestamptz,
    -- The fence of the run that wrote the row.
    fence      bigint      not null,
    constraint steps_pkey primary key (job_id, name),
    constraint steps_state check (state in ('done', 'failed', 'retry', 'open')),
    constraint steps_name check (name <> '' and octet_length(name) <= 300)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);

-- What was sent to workflows. Kept for as long as the retention of events.
create table tenure.events (
    id         bigint      generated always as identity primary key,
    name       text        not null,
    -- Which of the events of this name: an order, a user. The id of a job for a signal. Empty: there is one for all.
    key        text        not null default '',
    payload    jsonb,
    at         timestamptz not null default clock_timestamp(),
    by         text,
    -- The order in which streams deliver events. Given by the resolver when the event is committed; null: it has not seen it yet.
    position   bigint,
    constraint events_name check (name <> '' and octet_length(name) <= 200 and octet_length(key) <= 500)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
create index events_name_key on tenure.events (name, key, id);
create index events_stream on tenure.events (name, key, position) where position is not null;
create index events_unseen on tenure.events (id) where position is null;
create index events_at on tenure.events (at);
create sequence tenure.event_position as bigint cache 1;

-- Which events waiting workflows wait for. A row is written by the statement that suspends the workflow.
create table tenure.waits (
    job_id     uuid        not null,
    step       text        not null,
    event      text        not null,
    key        text        not null,
    -- For streams: only events behind this position. Null: any event, also an earlier one.
    after      bigint,
    -- The run that waits: a row that was written again meanwhile must not be taken for the earlier one.
    fence      bigint      not null,
    -- The resolver has looked for events that were there before the wait.
    checked    boolean     not null default false,
    constraint waits_pkey primary key (job_id, step)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
create index waits_event on tenure.waits (event, key);
create index waits_unchecked on tenure.waits (job_id) where not checked;

-- Who may use the web API. The tokens themselves are not stored, only their SHA-256.
create table tenure.tokens (
    id           uuid        not null primary key,
    hash         text        not null,
    name         text        not null,
    -- 'api' for programs; 'session' for a browser that signed in with an api token.
    purpose      text        not null default 'api',
    scope        text        not null,
    -- Null: all queues, all kinds.
    queues       text[],
    kinds        text[],
    -- Requests per second. Null: the default of the server; 0: not limited.
    rate         double precision,
    created_at   timestamptz not null default clock_timestamp(),
    created_by   text,
    expires_at   timestamptz,
    revoked_at   timestamptz,
    revoked_by   text,
    last_used_at timestamptz,
    -- The token that a session was started with: the session ends with it.
    parent_id    uuid,
    constraint tokens_hash unique (hash),
    constraint tokens_purpose check (purpose in ('api', 'session') and (purpose = 'session') = (parent_id is not null)),
    constraint tokens_scope check (scope in ('read', 'operate', 'admin')),
    constraint tokens_bounds check (name <> '' and octet_length(name) <= 200 and rate >= 0)
);
create index tokens_expires on tenure.tokens (expires_at) where purpose = 'session';

-- The secrets that sign access to single jobs. The newest one signs, and all that are not retired are accepted.
create table tenure.signing_keys (
    id         uuid        not null primary key,
    secret     text        not null,
    created_at timestamptz not null default clock_timestamp(),
    retired_at timestamptz
);

-- Every call of the web API that changes something: a row before it is carried out, and one with the result. Append-only: the roles of
-- `tenure sql --roles` may insert and read.
create table tenure.audit (
    id         bigint      generated always as identity primary key,
    at         timestamptz not null default clock_timestamp(),
    request_id uuid        not null,
    phase      text        not null,
    actor      text        not null,
    -- What the call was made with: the dashboard, the API, a tracker of one job, or the command line, for tokens.
    source     text        not null,
    ip         text,
    action     text        not null,
    subject    text,
    -- The body of the request and the subject before and after it, without secrets.
    request    jsonb,
    before     jsonb,
    after      jsonb,
    -- The HTTP status of the answer.
    status     integer,
    constraint audit_phase check (phase in ('requested', 'finished') and (phase = 'finished') = (status is not null))
);
-- Finds the entries whose retention has ended.
create index audit_at on tenure.audit (at);
