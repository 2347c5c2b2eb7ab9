-- signal_job: sends an event to one workflow, given by any link of its chain, if the chain has a live link. Its key is the id of the chain: a
-- link that continues the workflow receives what was sent to the one before and not received.
--   link  the job that has to be the live link; null: any
-- Returns whether it was sent.
with given as materialized (
    select coalesce((select coalesce(j.chain_id, j.id) from tenure.jobs j where j.id = :id::uuid limit 1),
                    (select coalesce(h.chain_id, h.id) from tenure.history h where h.id = :id::uuid limit 1), :id::uuid) as chain_id),
live as materialized (
    select coalesce((select j.id from tenure.jobs j where j.id = g.chain_id limit 1),
                    (select j.id from tenure.jobs j where j.chain_id = g.chain_id limit 1)) as id
      from given g),
sent as (
    insert into tenure.events (name, key, payload, by)
    select :name::text, g.chain_id::text, :payload::jsonb, coalesce(:by::text, session_user::text)
      from given g
     where (select l.id from live l) = coalesce(:link::uuid, (select l.id from live l))
    returning id)
select exists (select from sent) as sent
