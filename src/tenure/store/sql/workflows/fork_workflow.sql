-- fork_workflow: enqueues a workflow again under a new id, live or finished, with the steps that it recorded before :step. The new job
-- continues from there. The system data of the new job name the old one. It starts a chain of its own, and has the blockers of the old job.
--   step  the first step that is run again; null: all that is recorded is kept
-- Returns the queue and kind, and how many steps were copied. No row: no such workflow exists, or it has no such step.
with old as materialized (
    select j.id, j.kind, j.queue, j.priority, j.capability, j.max_attempts, j.timeout, j.input, j.auth, j.meta, j.system
      from tenure.jobs j where j.id = :id::uuid
     union all
    select h.id, h.kind, h.queue, h.priority, h.capability, h.max_attempts, h.timeout, h.input, h.auth, h.meta, h.system
      from tenure.history h where h.id = :id::uuid
     limit 1),
first_rerun as materialized (
    select s.number from tenure.steps s where s.job_id = :id::uuid and s.name = :step::text),
kept as materialized (
    select s.* from tenure.steps s
     where s.job_id = :id::uuid and s.what not in ('rollback', 'undo')
       and (s.state in ('done', 'failed') or s.state = 'open' and s.what = 'sleep' and s.due_at <= clock_timestamp())
       and (:step::text is null or s.number < (select p.number from first_rerun p))),
enqueued as materialized (
    select o.kind, o.queue, e.id
      from old o
     cross join lateral tenure.enqueue(jsonb_build_array(jsonb_build_object(
            'id', :new_id::uuid, 'kind', o.kind, 'queue', o.queue, 'priority', o.priority, 'capability', o.capability,
            'max_attempts', o.max_attempts, 'timeout', o.timeout, 'input', o.input, 'auth', o.auth, 'meta', o.meta, 'by', :by::text,
            'after', (select jsonb_agg(b.chain_id order by b.number) from tenure.blockers b where b.job_id = o.id and b.number > 0),
            'on_failure', (select d.on_failure from tenure.blocked d where d.job_id = o.id),
            'system', case when jsonb_typeof(o.system) = 'object'
                           then o.system - '{held,undo,canceling,link,signals,blockers}'::text[] else '{}' end
                || jsonb_build_object('forked', o.id)
                || case when exists (select from kept k where k.what = 'on_rollback') then '{"undo": true}' else '{}'::jsonb end))::text) e
     where :step::text is null or exists (select from first_rerun)),
copied as (
    insert into tenure.steps (job_id, name, number, what, state, output, error, attempts, started_at, ended_at, due_at, fence)
    select e.id, k.name, k.number, k.what, k.state, k.output, k.error, k.attempts, k.started_at, k.ended_at, k.due_at, 0
      from enqueued e
     cross join kept k
    returning 1),
recorded_incidents as (
    insert into tenure.incidents (job_id, what, by)
    select :id::uuid, 'forked', :by::text from enqueued e)
select e.queue, e.kind, (select count(*) from copied) as steps from enqueued e
