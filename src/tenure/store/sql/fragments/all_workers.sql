-- all_workers: every worker, whether its lease holds, and how many jobs it holds.
select w.id, w.supervisor_id, w.host, w.pid, w.queues::text, w.kinds::text, w.capabilities::text, w.concurrency, w.version,
       w.started_at, w.heartbeat_at, w.expires_at, w.died_at, w.died_how,
       w.died_at is null and w.expires_at > clock_timestamp() as alive,
       (select count(*) from tenure.held_jobs h where h.worker_id = w.id) as held,
       coalesce(w.name, w.host || ':' || w.pid) as name, w.draining_at, w.memory_mb, w.app_version
  from tenure.workers w
 order by w.started_at, w.id
