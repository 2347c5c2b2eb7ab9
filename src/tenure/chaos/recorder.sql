-- The record of a campaign: every change of the row of a job, a step, a worker, a leader, a limit, a schedule or a planned time. It is
-- written inside the changing transaction, so that a change that a crash undoes is undone here as well. For jobs and steps there are
-- statement triggers: one insert serves a whole batch.
create schema chaos;

create table chaos.moves (
    seq          bigserial   primary key,
    at           timestamptz not null default clock_timestamp(),
    relation     text        not null,
    job          uuid        not null,
    was          text,
    state        text,
    fence        bigint,
    was_claim    uuid,
    claim        uuid,
    worker       uuid,
    attempt      integer,
    max_attempts integer,
    crashes      integer,
    position     bigint,
    queue        text,
    priority     integer,
    kind         text,
    n            bigint,
    key          text,
    output       jsonb,
    due          timestamptz
) with (autovacuum_enabled = false);

create table chaos.steps (
    seq    bigserial   primary key,
    at     timestamptz not null default clock_timestamp(),
    job    uuid        not null,
    name   text        not null,
    number integer     not null,
    what   text        not null,
    was    text,
    state  text,
    fence  bigint      not null,
    output jsonb
) with (autovacuum_enabled = false);

create table chaos.terms (
    seq        bigserial   primary key,
    at         timestamptz not null default clock_timestamp(),
    duty       text        not null,
    was_holder uuid,
    was_term   bigint,
    holder     uuid,
    term       bigint
);

create table chaos.workers (
    seq    bigserial   primary key,
    at     timestamptz not null default clock_timestamp(),
    worker uuid        not null,
    pid    integer     not null,
    what   text        not null,
    how    text
);

create table chaos.limits (
    seq         bigserial   primary key,
    at          timestamptz not null default clock_timestamp(),
    name        text        not null,
    concurrency integer,
    rate        boolean     not null
);

create table chaos.plans (
    seq            bigserial        primary key,
    at             timestamptz      not null default clock_timestamp(),
    name           text             not null,
    kind           text             not null,
    cron           text,
    every          double precision,
    timezone       text             not null,
    overlap        text             not null,
    catch_up       text             not null,
    catch_up_limit integer          not null,
    paused         boolean          not null,
    retired        boolean          not null,
    was_since      timestamptz,
    since          timestamptz
);

create table chaos.ticks (
    seq        bigserial   primary key,
    began      timestamptz not null default now(),
    at         timestamptz not null default clock_timestamp(),
    xact       bigint      not null default pg_current_xact_id()::text::bigint,
    schedule   text        not null,
    planned_at timestamptz not null,
    until      timestamptz,
    times      integer     not null,
    was        text,
    outcome    text,
    job        uuid,
    by         text
);

create table chaos.effects (relation text not null, n bigint not null, job uuid, fence bigint);

-- Which steps are refused at present, until when, and with which error.
create table chaos.refusals (moment text primary key, code text not null, until timestamptz not null);

create function chaos.raise_refusal(doing text) returns void language plpgsql as $$
declare
    refusal text;
begin
    select r.code into refusal from chaos.refusals r where r.moment = doing and r.until > clock_timestamp();
    if refusal is not null then
        raise exception 'the campaign refuses to % this row', doing using errcode = refusal;
    end if;
end $$;

create function chaos.refuse() returns trigger language plpgsql as $$
begin
    perform chaos.raise_refusal(case
        when tg_op <> 'UPDATE' then 'finish'
        when old.claim_id is null and new.claim_id is not null then 'claim'
        when old.claim_id is null then
            case when old.state in ('scheduled', 'retry') then 'promote' when old.state = 'dead_letter' then 'replay' else '' end
        when new.claim_id is not null then ''
        when new.crashes > old.crashes then 'return'
        else 'move' end);
    return coalesce(new, old);
end $$;

-- The rows of other tables have other columns, so they have a function of their own.
create function chaos.refuse_insert() returns trigger language plpgsql as $$
begin
    perform chaos.raise_refusal(tg_argv[0]);
    return new;
end $$;

create function chaos.record_inserted() returns trigger language plpgsql as $$
begin
    insert into chaos.moves (relation, job, state, fence, claim, worker, attempt, max_attempts, crashes, position, queue, priority, kind, n, key, due)
    select 'jobs', b.id, b.state, b.fence, b.claim_id, (select c.worker_id from tenure.claims c where c.id = b.claim_id), b.attempt, b.max_attempts, b.crashes, b.position, b.queue,
           b.priority, b.kind, (b.input ->> 'n')::bigint, b.key, case when b.state = 'scheduled' then b.run_at end
      from inserted b;
    return null;
end $$;

create function chaos.record_changed() returns trigger language plpgsql as $$
begin
    insert into chaos.moves (relation, job, was, state, fence, was_claim, claim, worker, attempt, max_attempts, crashes, position, queue, priority, kind, due)
    select 'jobs', a.id, b.state, a.state, a.fence, b.claim_id, a.claim_id,
           (select c.worker_id from tenure.claims c where c.id = a.claim_id), a.attempt, a.max_attempts, a.crashes,
           a.position, a.queue, a.priority, a.kind, case when a.state in ('scheduled', 'retry', 'waiting') then a.run_at end
      from later a
      join earlier b on b.id = a.id
     where (a.state, a.fence, a.claim_id, a.position, a.attempt, a.crashes)
           is distinct from (b.state, b.fence, b.claim_id, b.position, b.attempt, b.crashes)
     -- A claim updates its rows in the order in which they lie in the table. It takes all of them at once, so none overtakes another.
     order by a.priority desc, a.position;
    return null;
end $$;

create function chaos.record_deleted() returns trigger language plpgsql as $$
begin
    insert into chaos.moves (relation, job, was, fence, was_claim, worker, attempt, max_attempts, crashes, position, queue, priority, kind)
    select tg_argv[0], g.id, g.state, g.fence, g.claim_id,
           (select c.worker_id from tenure.claims c where c.id = g.claim_id), g.attempt, g.max_attempts, g.crashes, 0, g.queue,
           g.priority, g.kind
      from deleted g;
    return null;
end $$;

create function chaos.record_finished() returns trigger language plpgsql as $$
begin
    insert into chaos.moves (relation, job, state, fence, claim, worker, attempt, max_attempts, crashes, position, queue, priority, kind, n, key, output)
    select 'history', f.id, f.state, f.fence, f.claim_id, f.worker_id, f.attempt, f.max_attempts, f.crashes, 0, f.queue, f.priority,
           f.kind, (f.input ->> 'n')::bigint, f.key, f.output
      from finished f;
    return null;
end $$;

create function chaos.record_new_steps() returns trigger language plpgsql as $$
begin
    insert into chaos.steps (job, name, number, what, state, fence, output)
    select s.job_id, s.name, s.number, s.what, s.state, s.fence, s.output from inserted s order by s.job_id, s.number;
    return null;
end $$;

create function chaos.record_changed_steps() returns trigger language plpgsql as $$
begin
    insert into chaos.steps (job, name, number, what, was, state, fence, output)
    select a.job_id, a.name, a.number, a.what, b.state, a.state, a.fence, a.output
      from later a
      join earlier b on b.job_id = a.job_id and b.name = a.name
     order by a.job_id, a.number;
    return null;
end $$;

create function chaos.record_deleted_steps() returns trigger language plpgsql as $$
begin
    insert into chaos.steps (job, name, number, what, was, fence)
    select g.job_id, g.name, g.number, g.what, g.state, g.fence from deleted g;
    return null;
end $$;

create function chaos.record_term() returns trigger language plpgsql as $$
begin
    insert into chaos.terms (duty, was_holder, was_term, holder, term)
    values (coalesce(new.name, old.name), old.holder, old.term, new.holder, new.term);
    return null;
end $$;

create function chaos.record_worker() returns trigger language plpgsql as $$
declare
    w tenure.workers := coalesce(new, old);
begin
    insert into chaos.workers (worker, pid, what, how)
    values (w.id, w.pid, case tg_op when 'INSERT' then 'registered' when 'DELETE' then 'removed' else 'condemned' end, w.died_how);
    -- A row that is inserted as condemned.
    if tg_op = 'INSERT' and w.died_at is not null then
        insert into chaos.workers (worker, pid, what, how) values (w.id, w.pid, 'condemned', w.died_how);
    end if;
    return null;
end $$;

create function chaos.record_limit() returns trigger language plpgsql as $$
declare
    l tenure.limits := coalesce(new, old);
begin
    insert into chaos.limits (name, concurrency, rate)
    select l.name, case when tg_op <> 'DELETE' then (l.rules ->> 'concurrency')::integer end, tg_op <> 'DELETE' and l.rules ? 'rate';
    return null;
end $$;

create function chaos.record_schedule() returns trigger language plpgsql as $$
declare
    s tenure.schedules := coalesce(new, old);
begin
    insert into chaos.plans (name, kind, cron, every, timezone, overlap, catch_up, catch_up_limit, paused, retired, was_since, since)
    values (s.name, s.kind, s.cron, s.every, s.timezone, s.overlap, s.catch_up, s.catch_up_limit, s.paused_at is not null,
            s.retired_at is not null, old.since, new.since);
    return null;
end $$;

create function chaos.record_tick() returns trigger language plpgsql as $$
declare
    t tenure.ticks := coalesce(new, old);
begin
    insert into chaos.ticks (schedule, planned_at, until, times, was, outcome, job, by)
    values (t.schedule, t.planned_at, t.until, t.times, old.outcome, new.outcome, t.job_id, t."by");
    return null;
end $$;

create trigger chaos_inserted after insert on tenure.jobs referencing new table as inserted
    for each statement execute function chaos.record_inserted();
create trigger chaos_changed after update on tenure.jobs referencing old table as earlier new table as later
    for each statement execute function chaos.record_changed();
create trigger chaos_deleted after delete on tenure.jobs referencing old table as deleted
    for each statement execute function chaos.record_deleted('jobs');
create trigger chaos_finished after insert on tenure.history referencing new table as finished
    for each statement execute function chaos.record_finished();
create trigger chaos_history_deleted after delete on tenure.history referencing old table as deleted
    for each statement execute function chaos.record_deleted('history');
create trigger chaos_steps_inserted after insert on tenure.steps referencing new table as inserted
    for each statement execute function chaos.record_new_steps();
create trigger chaos_steps_changed after update on tenure.steps referencing old table as earlier new table as later
    for each statement execute function chaos.record_changed_steps();
create trigger chaos_steps_deleted after delete on tenure.steps referencing old table as deleted
    for each statement execute function chaos.record_deleted_steps();
create trigger chaos_term after insert or update or delete on tenure.leases
    for each row execute function chaos.record_term();
create trigger chaos_worker after insert or delete on tenure.workers
    for each row execute function chaos.record_worker();
create trigger chaos_condemned after update of died_at on tenure.workers
    for each row when (old.died_at is distinct from new.died_at) execute function chaos.record_worker();
create trigger chaos_limit after insert or update or delete on tenure.limits
    for each row execute function chaos.record_limit();
create trigger chaos_schedule after insert or update or delete on tenure.schedules
    for each row execute function chaos.record_schedule();
create trigger chaos_tick after insert or update or delete on tenure.ticks
    for each row execute function chaos.record_tick();

create trigger chaos_refuse before update on tenure.jobs
    for each row when (old.kind like 'refused%') execute function chaos.refuse();
create trigger chaos_refuse_end before delete on tenure.jobs
    for each row when (old.kind like 'refused%' and old.claim_id is not null) execute function chaos.refuse();
-- Refuses all jobs of a claim under a rate limit.
create trigger chaos_refuse_start before insert on tenure.starts
    for each row execute function chaos.refuse_insert('start');
create trigger chaos_refuse_record before insert on tenure.jobs
    for each row when (new.kind = 'refused_planned') execute function chaos.refuse_insert('record');
