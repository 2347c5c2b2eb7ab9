-- end_session: ends the database session of a handler that was told to end and did not; what it has not committed is undone.
select pg_terminate_backend(:pid::integer)
