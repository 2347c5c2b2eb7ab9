-- identify_server: for people: the name of the database, the version of PostgreSQL, and its clock.
select current_database()::text as database, current_setting('server_version') as version, clock_timestamp() as at
