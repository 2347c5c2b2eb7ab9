-- find_lock_holders: the sessions whose locks session :pid waits for. Their queries are not returned: they may contain any data.
-- A prepared transaction has no session, and is left out. Ages are in seconds; null if the role may not see them.
select a.pid, coalesce(nullif(a.application_name, ''), a.backend_type, 'unknown application') as application,
       a.usename::text as user, a.state,
       extract(epoch from clock_timestamp() - a.xact_start)::float8 as transaction_age,
       extract(epoch from clock_timestamp() - a.query_start)::float8 as query_age
  from pg_stat_activity a
 where a.pid = any (pg_blocking_pids(:pid::integer))
 order by a.xact_start nulls last
