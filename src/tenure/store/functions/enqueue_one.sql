-- enqueue_one: writes one job that is pending at once, without key, blockers, times and what only Tenure's statements set. For enqueue,
-- which takes the transaction id first. Reads and checks the members as enqueue does. Returns the id of the job.
-- It has no search_path of its own, because that costs each call: it gets that of enqueue.
create or replace function tenure.enqueue_one(job jsonb) returns uuid
language plpgsql volatile
as $$
declare
    new_id uuid := coalesce((job ->> 'id')::uuid, tenure.uuid7());
    job_kind text := job ->> 'kind';
    job_queue text := coalesce(job ->> 'queue', 'default');
    job_capability text := job ->> 'capability';
    seconds double precision := (job ->> 'timeout')::double precision;
    -- A null in JSON is an omitted member.
    job_input jsonb := coalesce(nullif(job -> 'input', 'null'), '{}');
begin
    -- Called only when a value is out of bounds: nearly every job is valid.
    if octet_length(job_kind) > 200 or octet_length(job_queue) > 200 or octet_length(job_capability) > 200
       or seconds not between 0 and 3155760000 then
        perform tenure.check_job(job_kind, job_queue, job_capability, null, null, null, seconds);
    end if;
    with tallied as (
        insert into tenure.tallies (queue, kind, what, jobs) values (job_queue, job_kind, 'enqueued', 1))
    insert into tenure.jobs (id, state, position, kind, queue, priority, capability, max_attempts, timeout, input, parent_id, enqueued_by,
           auth, meta, limit_group)
    values (new_id, 'pending', nextval('tenure.job_position'), job_kind, job_queue, coalesce((job ->> 'priority')::smallint, 50::smallint),
            job_capability, coalesce((job ->> 'max_attempts')::integer, 3), seconds, job_input, (job ->> 'parent')::uuid,
            coalesce(job ->> 'by', session_user::text), nullif(job -> 'auth', 'null'), nullif(job -> 'meta', 'null'),
            -- An unlimited job costs one search by name.
            case when exists (select from tenure.limits l where l.name in ('kind:' || job_kind, 'queue:' || job_queue))
                 then tenure.limit_group_of(job_kind, job_queue, job_input) end);
    return new_id;
end
$$;
