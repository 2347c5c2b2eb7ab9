-- check_parents: refuses jobs that are enqueued by a run which no longer holds its own job.
--   locking  also lock the rows of the parents until the end of the transaction.
create or replace function tenure.check_parents(given jsonb, locking boolean) returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    if locking then
        -- A session that would take the job away must wait until its children are written.
        perform from tenure.jobs j
          where j.id in (select g.parent from jsonb_to_recordset(given) as g(parent uuid, claim uuid) where g.claim is not null)
          order by j.id
            for share;
    end if;
    if exists (select from jsonb_to_recordset(given) as g(parent uuid, claim uuid)
                where g.claim is not null
                  and not exists (select from tenure.jobs j where j.id = g.parent and j.claim_id = g.claim)) then
        raise exception 'the run that enqueues this job no longer holds its own job' using errcode = 'P0T01';
    end if;
end
$$;
