-- find_old_workers: live workers that were started by code which does not know schema version :version.
select coalesce(w.name, w.host || ':' || w.pid) as name, w.version
  from tenure.workers w
 where w.died_at is null and w.expires_at > clock_timestamp() and coalesce(w.schema_version, 0) < :version::integer
 order by w.started_at
