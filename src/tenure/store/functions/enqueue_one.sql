-- enqueue_one: writes one job that is pending at once, without key, blockers, times, chain and dependants: refuses a job with one of
-- these. Called by enqueue, and by Tenure's clients, which save the rest of enqueue. All other callers use enqueue.
-- Reads and checks the members as enqueue does, except claim: a caller whose job has a parent calls enqueue. Returns the id of the job.
create or replace function tenure.enqueue_one(job jsonb) returns uuid
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    -- Before its position, as in enqueue.
    begun xid8 := pg_current_xact_id();
    new_id uuid := coalesce((job ->> 'id')::uuid, tenure.uuid7());
    job_kind text := job ->> 'kind';
    job_queue text := coalesce(job ->> 'queue', 'default');
    job_capability text := job ->> 'capability';
    seconds double precision := (job ->> 'timeout')::double precision;
    -- Not in the statement below, which would prepare them for each call.
    limit_names text[] := array['kind:' || job_kind, 'queue:' || job_queue];
    -- A null in JSON is an omitted member.
    job_input jsonb := coalesce(nullif(job -> 'input', 'null'), '{}');
begin
    if job ?| array['key', 'after', 'delay', 'run_at', 'expires', 'expires_at', 'chain', 'dependants'] then
        raise exception 'enqueue_one takes only plain jobs: call tenure.enqueue() for this one' using errcode = 'invalid_parameter_value';
    end if;
    -- Called only when a value is out of bounds: nearly every job is valid.
    if octet_length(job_kind) > 200 or octet_length(job_queue) > 200 or octet_length(job_capability) > 200
       or seconds not between 0 and 3155760000 then
        perform tenure.check_job(job_kind, job_queue, job_capability, null, null, null, seconds);
    end if;
    with tallied as (
        insert into tenure.tallies (queue, kind, what, jobs) values (job_queue, job_kind, 'enqueued', 1))
    insert into tenure.jobs (id, state, position, kind, queue, priority, capability, max_attempts, timeout, input, parent_id, enqueued_by,
           auth, meta, system, limit_group)
    values (new_id, 'pending', nextval('tenure.job_position'), job_kind, job_queue, coalesce((job ->> 'priority')::smallint, 50::smallint),
            job_capability, coalesce((job ->> 'max_attempts')::integer, 3), seconds, job_input, (job ->> 'parent')::uuid,
            coalesce(job ->> 'by', session_user::text), nullif(job -> 'auth', 'null'), nullif(job -> 'meta', 'null'), nullif(job -> 'system', 'null'),
            -- An unlimited job costs one search by name.
            case when exists (select from tenure.limits l where l.name = any (limit_names))
                 then tenure.limit_group_of(job_kind, job_queue, job_input) end);
    return new_id;
end
$$;
