-- suspend_jobs: running -> waiting, for workflows that only wait, and whose claim is still the current one. No attempt is spent. Crashes
-- are forgotten: the run came to its end.
--   outcomes  JSON: id and claim_id of the run;
--             steps: what it waits for, each with number, name, what, state, output, error, attempts, and seconds until or the time (until)
--             when the wait ends, if it does;
--             waits: the events among them, each with step, event, key, after;
--             chains: the children among them, each with id and number, and missing: how many of them must end before it runs again;
--             held: why it cannot continue, if a person must decide;
--             stored: the names of steps whose storage was confirmed to the run. If one of them is gone (see record_steps), nothing that it
--             waits for is written, and it is due at once: its next run begins with what is recorded
-- The waits are written by the same statement: they are visible as soon as the job is waiting, unchecked, so the resolver finds events
-- that were sent before.
-- Returns the ids moved, whether a client watches them, whether jobs wait for their chains (none has ended), and their state and error; a missing id has lost its lease.
-- Rows are found one by one, then moved by ctid, as in finish_jobs.
with found as materialized (
    select o.id, o.claim_id, o.missing, j.tid, j.fence, c.at as started_at, w.whole, case when w.whole then o.steps end as steps,
           case when w.whole then o.waits end as waits, case when w.whole then o.chains end as chains, case when w.whole then o.held end as held
      from jsonb_to_recordset(:outcomes::jsonb) as o(id uuid, claim_id uuid, steps jsonb, waits jsonb, chains jsonb,
           missing integer, held text, stored jsonb)
     cross join lateral (
        select not exists (select from jsonb_array_elements_text(o.stored) as v(name)
                            where (select s.number from tenure.steps s where s.job_id = o.id and s.name = v.name limit 1) is null) as whole) w
     cross join lateral (
        select j.ctid as tid, j.fence from tenure.jobs j where j.id = o.id and j.claim_id = o.claim_id limit 1 /* skip locked */) j
      left join tenure.claims c on c.id = o.claim_id),
begun as materialized (
    -- The last one of a name counts, as in record_steps.
    select distinct on (f.id, s.name) f.id, f.fence, s.number, s.name, s.what, s.state, s.output, s.error, s.attempts,
           coalesce(s.until, coalesce(:now::timestamptz, clock_timestamp()) + make_interval(secs => s.seconds)) as due_at
      from found f
     cross join lateral rows from (jsonb_to_recordset(f.steps) as (number integer, name text, what text, state text, output jsonb, error text,
           attempts integer, seconds double precision, until timestamptz))
           with ordinality as s(number, name, what, state, output, error, attempts, seconds, until, ordinal)
     order by f.id, s.name, s.ordinal desc),
moved as (
    update tenure.jobs j
       set state = 'waiting', claim_id = null, held_group = null, lease_until = null, started_at = coalesce(f.started_at, j.started_at),
           position = case when d.due_at is null then -2 else 0 end, run_at = d.due_at,
           attempt = greatest(j.attempt - 1, 0), crashes = 0, error = coalesce(f.held, j.error),
           system = case when f.held is null then j.system else coalesce(j.system, '{}') || jsonb_build_object('held', f.held) end
      from found f
     cross join lateral (
        select case when f.whole then min(b.due_at) else coalesce(:now::timestamptz, clock_timestamp()) end as due_at
          from begun b where b.id = f.id and f.held is null) d
     where j.ctid = f.tid and j.claim_id = f.claim_id
    returning j.id, j.kind, j.queue, j.state, j.fence, f.held, f.waits, f.chains, f.missing),
began_steps as (
    insert into tenure.steps as s (job_id, name, number, what, state, output, error, attempts, started_at, ended_at, due_at, fence)
    select b.id, b.name, b.number, b.what, b.state, b.output, b.error, coalesce(b.attempts, 1), coalesce(:now::timestamptz, clock_timestamp()),
           case when b.state in ('done', 'failed') then coalesce(:now::timestamptz, clock_timestamp()) end, b.due_at, b.fence
      from begun b
      join moved m on m.id = b.id
    on conflict (job_id, name) do update
       set state = excluded.state, output = excluded.output, error = excluded.error, attempts = excluded.attempts, due_at = excluded.due_at,
           ended_at = excluded.ended_at, fence = excluded.fence
     where s.state in ('retry', 'open')),
-- Waits of earlier runs wake no one. A workflow that receives thousands of events must not keep a row for each: every further event would
-- be compared with all of them.
removed_waits as (
    delete from tenure.waits w
     where w.ctid = any (array(
        select w.tid
          from moved m
         cross join lateral (
            select w.ctid as tid from tenure.waits w
             where w.job_id = m.id and w.fence < m.fence
               and not exists (select from jsonb_to_recordset(m.waits) as g(step text) where g.step = w.step)
               for update skip locked) w))),
written_waits as (
    insert into tenure.waits as w (job_id, step, event, key, after, fence)
    select m.id, g.step, g.event, g.key, g.after, m.fence
      from moved m
     cross join lateral jsonb_to_recordset(m.waits) as g(step text, event text, key text, after bigint)
    on conflict (job_id, step) do update
       set event = excluded.event, key = excluded.key, after = excluded.after, fence = excluded.fence, checked = false),
-- Children that are waited for again are looked at again: one may have ended since the run looked.
written_blocked as (
    insert into tenure.blocked (job_id, total, missing, on_failure)
    select m.id, jsonb_array_length(m.chains), m.missing, 'run' from moved m where jsonb_array_length(m.chains) > 0
    on conflict (job_id) do update
       set total = excluded.total, missing = excluded.missing, on_failure = excluded.on_failure, failed = null, error = null),
written_blockers as (
    insert into tenure.blockers (chain_id, job_id, number)
    select c.id, m.id, c.number
      from moved m
     cross join lateral jsonb_to_recordset(m.chains) as c(id uuid, number integer)
    on conflict (chain_id, job_id, number) do update set armed = false, met = false),
ended as not materialized (
    select m.id, m.kind, m.queue, null::text as what, null::interval as waited, null::interval as ran, null::uuid as chain, null::text as ending
      from moved m),
/* include: job_endings */
select m.id::text, m.id in (select a.id from awaited a) as watched, false as dependants, m.state, m.held as error from moved m
