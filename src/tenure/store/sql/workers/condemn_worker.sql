-- condemn_worker: used by the worker's own supervisor when its process has ended. From now on it can neither claim nor renew.
update tenure.workers w
   set died_at = coalesce(:now::timestamptz, clock_timestamp()), died_how = :how
 where w.id = :id::uuid and w.supervisor_id = :supervisor_id::uuid and w.died_at is null
