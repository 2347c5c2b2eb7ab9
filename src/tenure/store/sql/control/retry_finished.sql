-- retry_finished: makes a new job of a finished one: the same work under a new id, without its key. Its meta names the old one.
-- Returns its queue; no row: there is no such job.
with old as materialized (
    select h.* from tenure.history h where h.id = :id::uuid limit 1),
noted as (
    insert into tenure.incidents (job_id, what, by)
    select o.id, 'retried', :by::text from old o)
select o.queue
  from old o
 cross join lateral tenure.enqueue(jsonb_build_array(jsonb_build_object(
        'id', :new_id::uuid, 'kind', o.kind, 'queue', o.queue, 'priority', o.priority, 'capability', o.capability,
        'max_attempts', o.max_attempts, 'timeout', o.timeout, 'input', o.input, 'auth', o.auth, 'by', :by::text,
        'meta', coalesce(o.meta, '{}') || jsonb_build_object('retry_of', o.id)))::text) e
