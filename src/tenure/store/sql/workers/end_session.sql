-- end_session: terminates the database session of a handler that did not stop when asked to; its uncommitted changes are rolled back.
-- The session must have begun at least :age seconds ago: a younger one has reused the pid, and is not the handler's.
select pg_terminate_backend(a.pid)
  from pg_stat_activity a
 where a.pid = :pid::integer and a.datname = current_database() and a.application_name = 'tenure handler'
   and a.backend_start <= clock_timestamp() - make_interval(secs => :age::float8)
