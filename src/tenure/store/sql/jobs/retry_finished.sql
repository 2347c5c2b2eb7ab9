-- retry_finished: enqueues a finished job again under a new id. The system data of the new job name the old one. Instead of the old
-- job's key it has its own key of scope 'live': of two concurrent calls, both get the same job. It starts a chain of its own, and has the
-- blockers of the old job: these have ended, so it is unblocked at once. The children of a workflow are not among them: their numbers are
-- below 0. A workflow begins again with nothing recorded, so what was noted about its old run is left out: otherwise the copy of a canceled
-- one would be rolled back at once, and that of a held one would not be woken by its children.
-- Returns the queue and kind, the job that will run, and whether it existed before. No row: no such finished job exists.
with old as materialized (
    select h.* from tenure.history h where h.id = :id::uuid limit 1),
enqueued as materialized (
    select o.kind, o.queue, e.id, e.existed
      from old o
     cross join lateral tenure.enqueue(jsonb_build_array(jsonb_build_object(
            'id', :new_id::uuid, 'kind', o.kind, 'queue', o.queue, 'priority', o.priority, 'capability', o.capability,
            'max_attempts', o.max_attempts, 'timeout', o.timeout, 'input', o.input, 'auth', o.auth, 'meta', o.meta, 'by', :by::text,
            'key', 'retry of ' || o.id, 'key_for', 'live',
            'after', (select jsonb_agg(b.chain_id order by b.number) from tenure.blockers b where b.job_id = o.id and b.number > 0),
            'on_failure', (select d.on_failure from tenure.blocked d where d.job_id = o.id),
            'system', case when jsonb_typeof(o.system) = 'object'
                           then o.system - '{held,undo,canceling,forked,link,signals,blockers}'::text[] else '{}' end
                || jsonb_build_object('retry_of', o.id)))::text) e),
recorded_incidents as (
    insert into tenure.incidents (job_id, what, by)
    select :id::uuid, 'retried', :by::text from enqueued e where not e.existed)
select e.queue, e.kind, e.id, e.existed from enqueued e
