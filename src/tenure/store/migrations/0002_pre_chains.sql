-- Chains and blockers.

-- The chain that the job is a link of. Null: it started its own chain, whose id is the job's id.
alter table tenure.jobs add column chain_id uuid;
-- Jobs wait for the end of its chain: the statement that ends it adds a row to chain_endings. Null: none. In no index, so that setting it
-- stays on the page (a HOT update).
alter table tenure.jobs add column dependants boolean;

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
