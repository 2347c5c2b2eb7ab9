-- Finds sessions of this database that are idle in a transaction which has written jobs.
-- Returns: their process, application name, and the seconds since the transaction began, the oldest first.
-- A transaction that has only read holds no such lock. The clock is that of PostgreSQL, because a test may have set the other one.
select a.pid, a.application_name, extract(epoch from pg_catalog.clock_timestamp() - a.xact_start)::float
  from pg_stat_activity a
 where a.datname = current_database()
   and a.pid <> pg_backend_pid()
   and a.state like 'idle in transaction%'
   and exists (
       select from pg_locks l where l.pid = a.pid and l.mode = 'RowExclusiveLock' and l.relation = 'tenure.jobs'::regclass)
 order by a.xact_start
