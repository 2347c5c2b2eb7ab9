-- end_session: ends the database session of a handler that was told to end and did not; what it has not committed is undone.
-- It began at least :age seconds ago: a younger one has inherited the number, and is somebody else's.
select pg_terminate_backend(a.pid)
  from pg_stat_activity a
 where a.pid = :pid::integer and a.datname = current_database() and a.application_name = 'tenure handler'
   and a.backend_start <= clock_timestamp() - make_interval(secs => :age::float8)
