-- Schedules, and what became of each of their planned times. New tables only: nothing that runs is held up.

create table tenure.schedules (
    name           text        not null primary key,
    -- The app whose code declares it; none: made by hand.
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
    overlap        text        not null,
    catch_up       text        not null,
    catch_up_limit integer     not null,
    jitter         double precision not null,
    created_at     timestamptz not null default clock_timestamp(),
    -- Of the definition, and by whom.
    changed_at     timestamptz not null default clock_timestamp(),
    changed_by     text,
    paused_at      timestamptz,
    paused_by      text,
    pause_reason   text,
    retired_at     timestamptz,
    -- All planned times up to here are recorded, or are none of ours.
    since          timestamptz not null default clock_timestamp(),
    -- When to look at it: its next planned time. None: the leader has not worked it out yet.
    next_at        timestamptz,
    last_at        timestamptz,
    -- Another one with every write. Whoever decides something about a schedule names the version it saw.
    version        uuid        not null default gen_random_uuid(),
    constraint schedules_times check ((cron is null) <> (every is null) and every >= 1 and jitter >= 0),
    constraint schedules_policies check (overlap in ('skip', 'queue', 'allow') and catch_up in ('none', 'one', 'all') and catch_up_limit >= 1),
    -- Those of a job: what is refused there must not get as far as there.
    constraint schedules_job check (name <> '' and kind <> '' and queue <> '' and priority between 0 and 100 and max_attempts >= 1)
) with (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0
);
create index schedules_next on tenure.schedules (next_at nulls first) where paused_at is null and retired_at is null;

-- One row for each planned time that came; for times that were missed in a row, one for all of them.
create table tenure.ticks (
    schedule       text        not null,
    planned_at     timestamptz not null,
    -- The last one of those missed together, and how many these are.
    until          timestamptz,
    times          integer     not null default 1,
    outcome        text        not null,
    job_id         uuid,
    recorded_at    timestamptz not null default clock_timestamp(),
    -- Who asked for a run that was not planned.
    by             text,
    constraint ticks_pkey primary key (schedule, planned_at),
    constraint ticks_outcome check (outcome in ('enqueued', 'skipped', 'queued', 'missed') and (outcome = 'enqueued') = (job_id is not null))
);
-- Finds the jobs of a schedule that may still be live, whatever was skipped since.
create index ticks_jobs on tenure.ticks (schedule, planned_at) where job_id is not null;
create index ticks_queued on tenure.ticks (schedule, planned_at) where outcome = 'queued';
create index ticks_recorded on tenure.ticks (recorded_at);
