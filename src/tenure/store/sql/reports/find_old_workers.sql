-- find_old_workers: live workers that were started by code which does not know schema version :version.
-- Read by key, because the columns are younger than the table: old workers have no row value for them.
select coalesce(to_jsonb(w) ->> 'name', w.host || ':' || w.pid) as name, w.version
  from tenure.workers w
 where w.died_at is null and w.expires_at > clock_timestamp()
   and coalesce((to_jsonb(w) ->> 'schema_version')::integer, 0) < :version::integer
 order by w.started_at
