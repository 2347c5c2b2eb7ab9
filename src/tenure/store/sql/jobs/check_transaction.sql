-- check_transaction: which transaction is this now, and has :xact been committed?
-- Asked twice, it gives two ids on a connection that commits every statement by itself.
select pg_current_xact_id()::text as xact, coalesce(pg_xact_status(:xact::xid8) = 'committed', false) as committed
