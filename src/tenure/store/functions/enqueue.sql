-- enqueue: the way to add jobs, for every driver and language. (Clients of Tenure call enqueue_one for a single plain job.)
--   jobs      a JSON array of objects: kind (required), input, queue, priority, capability, max_attempts, timeout (seconds), id,
--             delay (seconds) or run_at for later, expires (seconds) or expires_at: canceled if it was not started by then,
--             auth, meta, by (who enqueues it), and
--             key with key_for: 'forever' (the default), 'live' (until the job is over), or a number of seconds;
--             parent with claim: the run that enqueues it, which must still hold its own job;
--             after: the ids of chains that must end first, with on_failure: 'cancel' (the default), 'run' or 'wait';
--             system: {"headers": {...}}, with texts such as the context of a trace.
--             Only Tenure's own statements give other members of system, chain (the chain that the job is a link of) and dependants.
--             Omitted members take their defaults. Names and keys have at most 200 bytes, times are finite.
--   again     true when the outcome of an earlier call with the same ids is unknown: jobs that the earlier call wrote are not
--             written a second time, even if they have finished since.
--   borrowed  true inside a transaction of the caller: then the parent's row is checked, but not locked until the caller commits.
-- Returns one row per job: the id of the job that was written or that holds its key, whether that job existed before, and if so
-- whether its input differs, and the requested id.
create or replace function tenure.enqueue(jobs text, again boolean default false, borrowed boolean default false)
returns table (id uuid, existed boolean, differs boolean, requested_id uuid)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    given jsonb := jobs::jsonb;
    -- The transaction id must be older than any position that it takes: workers rely on that order to know
    -- below which position no job can appear any more.
    begun xid8 := pg_current_xact_id();
    keyed boolean;
    waiting boolean;
    limited text[];
begin
    if again then
        return query select e.* from tenure.enqueue_again(given) e;
        return;
    end if;
    if position('"claim"' in jobs) > 0 then
        perform tenure.check_parents(given, not borrowed);
    end if;
    -- A plain job alone, as most callers enqueue it, costs half as much without the statement for many.
    if jsonb_array_length(given) = 1 and jsonb_typeof(given -> 0) = 'object'
       and not given -> 0 ?| array['key', 'after', 'delay', 'run_at', 'expires', 'expires_at', 'chain', 'dependants'] then
        id := tenure.enqueue_one(given -> 0);
        existed := false;
        differs := false;
        requested_id := id;
        return next;
        return;
    end if;
    keyed := position('"key"' in jobs) > 0;
    waiting := position('"after"' in jobs) > 0;
    limited := array(select r.name from tenure.limit_rules r);
    if keyed then
        given := tenure.take_keys(given);
    end if;
    if waiting then
        given := tenure.block_jobs(given);
    end if;
    return query
    with inserted as (
        insert into tenure.jobs (id, state, position, run_at, kind, queue, priority, capability, max_attempts, timeout, input,
               key, parent_id, enqueued_by, auth, meta, system, limit_group, chain_id, dependants, expires_at)
        -- In conditions, what the row has comes before variables, which cost more to read: most rows have none of it.
        select coalesce(g.id, tenure.uuid7()),
               case when g.blockers is not null and waiting and g.blockers > 0 then 'blocked' when due.later is null then 'pending' else 'scheduled' end,
               case when g.blockers is not null and waiting and g.blockers > 0 then -2 when due.later is null then nextval('tenure.job_position') else 0 end,
               due.later,
               -- Called only when a value is out of bounds: nearly every job is valid.
               case when octet_length(g.kind) > 200 or octet_length(g.queue) > 200 or octet_length(g.capability) > 200
                      or ((g.run_at is not null or g.delay is not null or g.timeout is not null)
                          and (g.run_at not between '1970-01-01 00:00:00Z' and '2200-01-01 00:00:00Z'
                               or g.delay not between -3155760000 and 3155760000 or g.timeout not between 0 and 3155760000))
                    then tenure.check_job(g.kind, g.queue, g.capability, null, g.delay, g.run_at, g.timeout)
                    else g.kind end,
               coalesce(g.queue, 'default'), coalesce(g.priority, 50::smallint), g.capability,
               coalesce(g.max_attempts, 3), g.timeout, coalesce(g.input, '{}'),
               g.key, g.parent, coalesce(g.by, session_user::text), g.auth, g.meta,
               case when g.blockers is not null and waiting and g.blockers > 0 then coalesce(g.system, '{}') || jsonb_build_object('blockers', g.blockers) else g.system end,
               -- An unlimited job costs one search in a short list, and nothing at all if no limits exist.
               case when limited <> '{}' and ('kind:' || g.kind = any (limited) or 'queue:' || coalesce(g.queue, 'default') = any (limited))
                    then tenure.limit_group_of(g.kind, coalesce(g.queue, 'default'), coalesce(g.input, '{}')) end,
               g.chain, g.dependants,
               -- Within the years that every driver can read: a time such as infinity would make all lists with this job fail.
               case when g.expires_at is not null or g.expires is not null
                    then greatest(least(coalesce(g.expires_at, clock_timestamp() + make_interval(secs => g.expires)),
                                        '2200-01-01 00:00:00Z'), '1970-01-01 00:00:00Z') end
          from jsonb_to_recordset(given) as g(id uuid, kind text, queue text, priority smallint, capability text,
               max_attempts integer, timeout double precision, delay double precision, run_at timestamptz, input jsonb,
               key text, parent uuid, by text, auth jsonb, meta jsonb, system jsonb, existing_id uuid, chain uuid, dependants boolean, blockers integer,
               expires double precision, expires_at timestamptz)
         -- Most jobs have neither: two tests for null are all that a job without a time costs.
         cross join lateral (
            select case when g.run_at is not null or g.delay is not null
                        then coalesce(g.run_at, case when g.delay between -3155760000 and 3155760000
                                                     then clock_timestamp() + make_interval(secs => g.delay) end) end as run_at) as wanted
         cross join lateral (
            select case when wanted.run_at is not null and wanted.run_at > clock_timestamp() then wanted.run_at end as later) as due
         where g.existing_id is null or not keyed
        returning jobs.id, jobs.queue, jobs.kind),
    tallied as (
        insert into tenure.tallies (queue, kind, what, jobs)
        select i.queue, i.kind, 'enqueued', count(*) from inserted i group by i.queue, i.kind)
    select i.id, false, false, i.id from inserted i;
    if keyed then
        return query
        select g.existing_id, true, g.differs, g.id
          from jsonb_to_recordset(given) as g(id uuid, existing_id uuid, differs boolean)
         where g.existing_id is not null;
    end if;
end
$$;
