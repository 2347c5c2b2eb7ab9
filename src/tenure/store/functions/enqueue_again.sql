-- enqueue_again: enqueue, when an earlier call with the same ids may or may not have been committed. For enqueue.
create or replace function tenure.enqueue_again(given jsonb)
returns table (id uuid, existed boolean, differs boolean, requested_id uuid)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    fresh jsonb;
begin
    if exists (select from jsonb_to_recordset(given) as g(id uuid) where g.id is null) then
        raise exception 'enqueue again needs the ids of the call that it repeats' using errcode = 'invalid_parameter_value';
    end if;
    for tries in 1 .. 10 loop
        select coalesce(jsonb_agg(g.job order by g.ordinal), '[]') into fresh
          from (select distinct on (e.job ->> 'id') e.job, e.ordinal
                  from jsonb_array_elements(given) with ordinality as e(job, ordinal)
                 where (select j.id from tenure.jobs j where j.id = (e.job ->> 'id')::uuid limit 1) is null
                   and (select h.id from tenure.history h where h.id = (e.job ->> 'id')::uuid limit 1) is null
                 order by e.job ->> 'id', e.ordinal) g;
        begin
            return query select e.* from tenure.enqueue(fresh::text, false) e;
            exit;
        exception when unique_violation then
            -- The earlier call was still running and has committed just now: look again. An older snapshot never sees its rows,
            -- and a violation of another unique index is not ours to handle.
            if current_setting('transaction_isolation') <> 'read committed' then
                raise exception 'the earlier call is not visible to this transaction' using errcode = 'serialization_failure';
            elsif tries = 10 then
                raise;
            end if;
        end;
    end loop;
    -- A new statement sees what had to be committed before our insert could succeed: a job that
    -- finished in between is in history by now, and its second copy is deleted.
    delete from tenure.jobs j
     where j.ctid = any (array(
        select j.tid
          from jsonb_to_recordset(fresh) as g(id uuid)
         cross join lateral (select h.id from tenure.history h where h.id = g.id limit 1) h
         cross join lateral (select j.ctid as tid from tenure.jobs j where j.id = g.id limit 1) j));
    return query
    select (e.job ->> 'id')::uuid, true, false, (e.job ->> 'id')::uuid
      from jsonb_array_elements(given) with ordinality as e(job, ordinal)
     where (e.job ->> 'id')::uuid not in (select f.id from jsonb_to_recordset(fresh) as f(id uuid))
     order by e.ordinal;
end
$$;
