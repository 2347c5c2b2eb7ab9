-- record_steps: stores the results of workflow steps, for runs whose claim is still the current one.
--   steps  JSON: id and claim_id of the run, and number, name, what, state, output, error, attempts, ran (seconds) of the step; the last
--          step of a run also has before: the name of a step whose storage was confirmed to the run before
-- The share lock on the job makes a session that would take the job away wait until the step is stored. The next run of the job reads
-- the steps after its claim, so it finds all that were stored, and no earlier run can store one afterwards.
-- A step that is stored already stays as it is, unless it is tried again or waits: a repeated call changes nothing. If one call has a step
-- twice, as a status that was set twice, the last one counts.
-- After a failover to a standby that lagged behind, a run may still hold its claim while steps that it has stored are gone. What it does
-- next would not follow from what is recorded, so nothing more is stored for it. One step per run is looked up, not each: commits are
-- replicated in their order, so if the last one is there, all are.
-- Returns the runs that hold their jobs, and whether all that was confirmed to them is there: if so, their steps are stored. A missing run has
-- lost its lease, or another session has locked its job's row.
with given as materialized (
    select distinct on (g.id, g.name) g.*
      from rows from (jsonb_to_recordset(:steps::jsonb) as (id uuid, claim_id uuid, number integer, name text, what text, state text,
           output jsonb, error text, attempts integer, ran double precision, before text))
           with ordinality as g(id, claim_id, number, name, what, state, output, error, attempts, ran, before, ordinal)
     order by g.id, g.name, g.ordinal desc),
held as materialized (
    select g.id, g.claim_id, j.fence,
           g.before is null or (select s.number from tenure.steps s where s.job_id = g.id and s.name = g.before limit 1) is not null as whole
      from (select g.id, g.claim_id, max(g.before) as before from given g group by g.id, g.claim_id) g
     cross join lateral (
        select j.fence from tenure.jobs j where j.id = g.id and j.claim_id = g.claim_id
         limit 1 for share skip locked) j),
recorded as (
    insert into tenure.steps as s (job_id, name, number, what, state, output, error, attempts, started_at, ended_at, fence)
    select g.id, g.name, g.number, g.what, g.state, g.output, g.error, coalesce(g.attempts, 1),
           coalesce(:now::timestamptz, clock_timestamp()) - make_interval(secs => g.ran), coalesce(:now::timestamptz, clock_timestamp()), h.fence
      from given g
      join held h on h.id = g.id and h.claim_id = g.claim_id
     where h.whole
    on conflict (job_id, name) do update
       set state = excluded.state, output = excluded.output, error = excluded.error, attempts = excluded.attempts,
           started_at = coalesce(s.started_at, excluded.started_at), ended_at = excluded.ended_at, fence = excluded.fence
     where s.state in ('retry', 'open'))
select h.id::text as job_id, h.claim_id::text as claim_id, h.whole from held h
