-- enter_transaction: on the connection of a handler, returns the id of the transaction and whether it sees the job of this run.
-- pg_current_xact_id() assigns the transaction an id at once. The settling statement writes only under the same id.
-- Called twice, it returns two different ids on a connection that commits every statement separately.
select pg_current_xact_id()::text as xact,
       exists (select from tenure.jobs j where j.id = :id::uuid and j.claim_id = :claim_id::uuid) as seen
