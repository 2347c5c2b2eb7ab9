-- take_keys: for each job whose key is taken, adds the job that holds the key (existing_id) and whether its input differs (differs). All
-- other jobs take their keys now. If the transaction that takes a key has not committed yet, this waits for it.
create or replace function tenure.take_keys(given jsonb) returns jsonb
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    perform tenure.check_job(g.kind, null, null, g.key, null, null, null)
       from jsonb_to_recordset(given) as g(kind text, key text)
      where g.key is not null and (octet_length(g.key) > 200 or octet_length(g.kind) > 200);
    if exists (select from jsonb_to_recordset(given) as g(key_for text)
                where g.key_for not in ('live', 'forever') and g.key_for !~ '^[0-9]{1,10}(\.[0-9]+)?(e-?[0-9])?$') then
        raise exception 'key_for must be live, forever or a number of seconds' using errcode = 'invalid_parameter_value';
    end if;
    select coalesce(jsonb_agg(case when e.job ->> 'id' is null then e.job || jsonb_build_object('id', tenure.uuid7()) else e.job end
                              order by e.ordinal), '[]')
      into given
      from jsonb_array_elements(given) with ordinality as e(job, ordinal);
    for tries in 1 .. 20 loop
        insert into tenure.keys as k (kind, key, job_id, scope, expires_at, digest)
        select distinct on (g.kind, g.key) g.kind, g.key, g.id, t.scope, t.expires_at, tenure.input_digest(g.input)
          from rows from (jsonb_to_recordset(given) as (id uuid, kind text, key text, key_for text, input jsonb))
               with ordinality as g(id, kind, key, key_for, input, ordinal)
         cross join lateral tenure.key_term(g.key_for) as t
         where g.key is not null
         order by g.kind, g.key, g.ordinal
        on conflict (kind, key) do nothing;
        -- Locked before they are read, always in the same order: rows that an earlier statement saw may be gone.
        perform from tenure.keys k
          where (k.kind, k.key) in (select g.kind, g.key from jsonb_to_recordset(given) as g(kind text, key text) where g.key is not null)
          order by k.kind, k.key
            for update;
        update tenure.keys k
           set job_id = g.id, scope = g.scope, taken_at = clock_timestamp(), expires_at = g.expires_at, digest = g.digest
          from (select distinct on (g.kind, g.key) g.id, g.kind, g.key, t.scope, t.expires_at, tenure.input_digest(g.input) as digest
                  from rows from (jsonb_to_recordset(given) as (id uuid, kind text, key text, key_for text, input jsonb))
                       with ordinality as g(id, kind, key, key_for, input, ordinal)
                 cross join lateral tenure.key_term(g.key_for) as t
                 where g.key is not null
                 order by g.kind, g.key, g.ordinal) g
         where k.kind = g.kind and k.key = g.key and k.job_id <> g.id
           -- An expired window does not free the key of a job that is still to run. A dead letter does not count: it does not
           -- run by itself, and takes its key again when it is replayed.
           and (k.scope = 'live' or k.expires_at <= clock_timestamp())
           and not exists (select from tenure.jobs j where j.id = k.job_id and j.state <> 'dead_letter');
        exit when not exists (
            select from jsonb_to_recordset(given) as g(kind text, key text)
             where g.key is not null and not exists (select from tenure.keys k where k.kind = g.kind and k.key = g.key));
        if tries = 20 then
            raise exception 'the keys of these jobs are removed again and again by other sessions' using errcode = 'serialization_failure';
        end if;
    end loop;
    return (
        select coalesce(jsonb_agg(case when k.job_id is null or k.job_id = (e.job ->> 'id')::uuid then e.job
                    else e.job || jsonb_build_object('existing_id', k.job_id, 'differs', k.digest <> tenure.input_digest(e.job -> 'input')) end
                    order by e.ordinal), '[]')
          from jsonb_array_elements(given) with ordinality as e(job, ordinal)
          left join tenure.keys k on k.kind = e.job ->> 'kind' and k.key = e.job ->> 'key');
end
$$;
