-- probe_health: what slows or stops a queue before anybody notices, as far as PostgreSQL can tell.
-- Returns one row: the age of the oldest snapshot in seconds, and whose it is; dead and live rows of tenure.jobs, and when it was
-- last vacuumed; for how many days ahead history has partitions, and how many finished jobs no partition took; connections in
-- use, and how many there may be.
select coalesce(extract(epoch from clock_timestamp() - s.since), 0)::float8, s.who,
       coalesce(t.n_dead_tup, 0)::bigint, coalesce(t.n_live_tup, 0)::bigint, greatest(t.last_vacuum, t.last_autovacuum),
       (select coalesce(max(to_date(right(c.relname, 8), 'YYYYMMDD')) - (clock_timestamp() at time zone 'UTC')::date, -1)
          from pg_inherits i join pg_class c on c.oid = i.inhrelid
         where i.inhparent = 'tenure.history'::regclass and c.relname ~ '^history_[0-9]{8}$'),
       (select count(*) from (select from tenure.history_default limit 1000) d),
       (select count(*) from pg_stat_activity a where a.backend_type = 'client backend'),
       current_setting('max_connections')::integer
  from (select 1) once
  left join lateral (
    select p.since, p.who
      from (select a.xact_start as since, format('%s, process %s', coalesce(nullif(a.application_name, ''), a.usename), a.pid) as who
              from pg_stat_activity a
             where a.backend_xmin is not null and a.xact_start is not null and a.pid <> pg_backend_pid()
            union all
            select x.prepared, format('prepared transaction %s', x.gid) from pg_prepared_xacts x) p
     order by p.since
     limit 1) s on true
  left join pg_stat_all_tables t on t.relid = 'tenure.jobs'::regclass
