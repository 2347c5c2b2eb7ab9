-- probe_server: the server's clock; whether autovacuum runs, with track_counts; how full the notification queue is, from 0 to 1; how
-- many transactions and multixacts are not frozen.
select extract(epoch from clock_timestamp())::float8 as clock,
       current_setting('autovacuum')::boolean and current_setting('track_counts')::boolean as autovacuum,
       pg_notification_queue_usage()::float8 as notify_usage,
       age(d.datfrozenxid)::bigint as xid_age, mxid_age(d.datminmxid)::bigint as multixact_age
  from pg_database d
 where d.datname = current_database()
