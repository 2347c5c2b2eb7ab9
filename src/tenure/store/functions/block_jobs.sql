-- block_jobs: for each of these jobs with `after`, stores which chains it waits for, and adds their number (blockers). Jobs without an id
-- get one. A job with `open` is a group without members: if it is true, chains are added to it later, and it waits until it is closed. For
-- enqueue.
--   An element of `after` is the id of a chain or of any of its links. It must exist: live, finished, or earlier in the same call. If an
--   earlier job of the same call is not written because another job has its key (existing_id), that one is meant. Nothing
--   is locked: the resolver checks after the commit whether the chain is still live. Only a chain that exists can be named, and only an
--   earlier job of the same call, so jobs that start a chain cannot wait for each other in a circle.
create or replace function tenure.block_jobs(given jsonb) returns jsonb
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    pairs jsonb;
    missing record;
begin
    select jsonb_agg(case when e.job ->> 'id' is null then e.job || jsonb_build_object('id', tenure.uuid7()) else e.job end order by e.ordinal)
      into given
      from jsonb_array_elements(given) with ordinality as e(job, ordinal);
    with wanted as materialized (
        select (e.job ->> 'id')::uuid as job_id, e.ordinal, coalesce(e.job ->> 'on_failure', 'cancel') as on_failure,
               coalesce(x.existing_id, a.id::uuid) as id, a.number
          from jsonb_array_elements(given) with ordinality as e(job, ordinal)
         cross join lateral jsonb_array_elements_text(e.job -> 'after') with ordinality as a(id, number)
          left join (
            select (e.job ->> 'id')::uuid as id, (e.job ->> 'existing_id')::uuid as existing_id, e.ordinal
              from jsonb_array_elements(given) with ordinality as e(job, ordinal)
             where e.job ? 'existing_id') x on x.id = a.id::uuid and x.ordinal < e.ordinal
         where jsonb_typeof(e.job -> 'after') = 'array' and e.job -> 'existing_id' is null),
    of_this_call as materialized (
        select (e.job ->> 'id')::uuid as id, coalesce(e.job ->> 'chain', e.job ->> 'id')::uuid as chain, min(e.ordinal) as ordinal
          from jsonb_array_elements(given) with ordinality as e(job, ordinal)
         where e.job -> 'existing_id' is null
         group by 1, 2),
    stored as materialized (
        select w.id, coalesce(j.chain, l.chain, h.chain, e.chain, o.chain) as chain
          from (select distinct w.id from wanted w) w
          left join lateral (select coalesce(j.chain_id, j.id) as chain from tenure.jobs j where j.id = w.id limit 1) j on true
          left join lateral (select j.chain_id as chain from tenure.jobs j where j.chain_id = w.id limit 1) l on j.chain is null
          left join lateral (
            select coalesce(h.chain_id, h.id) as chain from tenure.history h where h.id = w.id limit 1) h on coalesce(j.chain, l.chain) is null
          left join lateral (
            select e.chain_id as chain from tenure.chain_endings e where e.chain_id = w.id limit 1) e on coalesce(j.chain, l.chain, h.chain) is null
          -- The first links of a long chain may be older than the history that is kept.
          left join lateral (
            select h.chain_id as chain from tenure.history h
             where h.chain_id = w.id limit 1) o on coalesce(j.chain, l.chain, h.chain, e.chain) is null)
    select jsonb_agg(jsonb_build_object('job_id', w.job_id, 'given', w.id, 'chain_id', coalesce(s.chain, o.chain), 'number', w.number,
                                        'on_failure', w.on_failure))
      into pairs
      from wanted w
      join stored s on s.id = w.id
      left join of_this_call o on o.id = w.id and o.ordinal < w.ordinal;
    if pairs is null and position('"open"' in given::text) = 0 then
        return given;
    end if;
    select p.job_id, p.given into missing
      from jsonb_to_recordset(pairs) as p(job_id uuid, given uuid, chain_id uuid) where p.chain_id is null limit 1;
    if found then
        raise exception 'job % is to wait for %, which does not exist', missing.job_id, missing.given
            using errcode = 'invalid_parameter_value', hint = 'Enqueue it first, or earlier in the same call.';
    end if;
    insert into tenure.blocked (job_id, total, missing, on_failure)
    select p.job_id, count(*), count(*), min(p.on_failure)
      from jsonb_to_recordset(pairs) as p(job_id uuid, on_failure text) group by p.job_id;
    insert into tenure.blocked (job_id, total, missing, on_failure, open)
    select (e.job ->> 'id')::uuid, 0, (e.job ->> 'open')::boolean::integer, coalesce(e.job ->> 'on_failure', 'cancel'), (e.job ->> 'open')::boolean
      from jsonb_array_elements(given) as e(job)
     where e.job ->> 'open' is not null and e.job -> 'existing_id' is null;
    insert into tenure.blockers (chain_id, job_id, number, waits)
    select p.chain_id, p.job_id, p.number, p.on_failure = 'wait'
      from jsonb_to_recordset(pairs) as p(job_id uuid, chain_id uuid, number integer, on_failure text);
    return (
        select jsonb_agg(case when n.blockers > 0 then e.job || jsonb_build_object('blockers', n.blockers) else e.job end order by e.ordinal)
          from jsonb_array_elements(given) with ordinality as e(job, ordinal)
         cross join lateral (
            select case when e.job ->> 'open' is not null then 1 when jsonb_typeof(e.job -> 'after') = 'array'
                        then jsonb_array_length(e.job -> 'after') else 0 end as blockers) n);
end
$$;
