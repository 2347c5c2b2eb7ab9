-- emit: sends events to workflows, also those that wait for them later. For every driver and language; in a transaction of the caller's,
-- workflows see the events when it commits.
--   events  a JSON array of objects: name (required), key (which of the events of this name; for a signal, the id of a job), payload,
--           by (who sends it)
-- Returns the number of events. The caller notifies the resolver: notify tenure, 'events'. Without that they are found by polling.
create or replace function tenure.emit(events text)
returns bigint
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
    with sent as (
        insert into tenure.events (name, key, payload, by)
        select e.event ->> 'name', coalesce(e.event ->> 'key', ''), e.event -> 'payload', coalesce(e.event ->> 'by', session_user::text)
          from jsonb_array_elements(events::jsonb) with ordinality as e(event, ordinal)
         order by e.ordinal
        returning id)
    select count(*) from sent s
$$;
