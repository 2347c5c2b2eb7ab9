-- enter_transaction: on a handler's connection: which transaction is this, and does it see the job of this run?
-- pg_current_xact_id() gives the transaction an id right away. The settling statement writes only under the same id.
-- Asked twice, it gives two ids on a connection that commits every statement by itself.
select pg_current_xact_id()::text as xact,
       exists (select from tenure.jobs j where j.id = :id::uuid and j.claim_id = :claim_id::uuid) as seen
