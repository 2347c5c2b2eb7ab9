-- probe_sessions: the number of connections in use and allowed; the number of sessions that this role cannot see, and its name; as JSON,
-- transactions of this database that have been open for more than :old seconds, the oldest first, and prepared ones.
-- Without pg_read_all_stats the details of other roles' sessions are null.
select (select count(*) from pg_stat_activity a where coalesce(a.backend_type, 'client backend') = 'client backend') as connections,
       current_setting('max_connections')::integer - current_setting('superuser_reserved_connections')::integer as max_connections,
       (select count(*) from pg_stat_activity a where a.backend_type is null) as hidden,
       quote_ident(current_user) as account,
       (select json_agg(t order by t.age desc)::text
          from (select a.pid, coalesce(nullif(a.application_name, ''), 'no application name') as application, a.usename as "user", a.state,
                       extract(epoch from clock_timestamp() - a.xact_start)::float8 as age, a.backend_xmin is not null as snapshot
                  from pg_stat_activity a
                 where a.datname = current_database() and a.pid <> pg_backend_pid() and a.backend_type <> 'autovacuum worker'
                   and a.xact_start < clock_timestamp() - make_interval(secs => :old::float8)
                union all
                select null, format('prepared transaction %s', x.gid), x.owner, 'prepared',
                       extract(epoch from clock_timestamp() - x.prepared)::float8, true
                  from pg_prepared_xacts x
                 where x.database = current_database() and x.prepared < clock_timestamp() - make_interval(secs => :old::float8)) t) as transactions
