-- What workflows keep: the results of their steps, the events that are sent to them, and what they wait for.

-- The columns of chains in history. Not in the transaction that alters jobs: running workers lock the two tables in either order, so a
-- transaction that locks both may deadlock with them.
alter table tenure.history add column chain_id uuid;
-- The next link of the chain, which was created when this one completed.
alter table tenure.history add column next_id uuid;

create index history_chain on only tenure.history (chain_id, id) where chain_id is not null;

-- One row per step of a workflow, found by its name when the workflow runs again. Names are unique within a run: the second step of a
-- name is `name#2`, and steps of tasks that the workflow started begin with the number of the task.
create table tenure.steps (
    job_id     uuid        not null,
    name       text        not null,
    -- The order in which steps were recorded or began to wait.
    number     integer     not null,
    -- step, value, transaction, sleep, wait, event, call, start, patch, rollback
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
