-- find_locked_tables: our tables that other sessions have locked against all reads, or wait to lock so: reads wait behind these, too. A lock of
-- an index counts as one of its table. Waits for no lock of a table. The queries of the sessions are not returned: they may contain any data.
-- Ages are in seconds; null if the role may not see them.
--   behind  the sessions that one which waits for its lock waits for; 0: a prepared transaction. Null: it has the lock.
select string_agg(distinct t.relname, ', ' order by t.relname) as tables, a.pid,
       coalesce(nullif(a.application_name, ''), a.backend_type, 'unknown application') as application, a.usename::text as user, a.state,
       extract(epoch from clock_timestamp() - a.xact_start)::float8 as transaction_age,
       case when not l.granted then array_to_string(pg_blocking_pids(a.pid), ', ') end as behind
  from pg_locks l
  left join pg_index i on i.indexrelid = l.relation
  join pg_class t on t.oid = coalesce(i.indrelid, l.relation)
  join pg_stat_activity a on a.pid = l.pid
 where l.locktype = 'relation' and l.mode = 'AccessExclusiveLock' and l.pid <> pg_backend_pid()
   and l.database = (select d.oid from pg_database d where d.datname = current_database()) and t.relkind in ('r', 'p')
   and t.relnamespace = (select j.relnamespace from pg_class j where j.oid = 'tenure.jobs'::regclass)
 group by a.pid, a.application_name, a.backend_type, a.usename, a.state, a.xact_start, l.granted
 order by l.granted desc, a.xact_start nulls last
