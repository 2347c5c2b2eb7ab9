-- check_transaction: returns the id of the current transaction, and whether :xact was committed.
-- Called twice, it returns two different ids on a connection that commits every statement separately.
select pg_current_xact_id()::text as xact, coalesce(pg_xact_status(:xact::xid8) = 'committed', false) as committed
