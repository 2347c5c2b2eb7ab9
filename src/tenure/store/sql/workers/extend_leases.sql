-- extend_leases: renews the leases of workers, without the other queries of renew_workers. It needs no other table: a lock on one, or a
-- revoked privilege, must not cost a worker its lease.
-- Returns the ids renewed: a missing worker was condemned, and has lost its claims.
update tenure.workers w
   set heartbeat_at = coalesce(:now::timestamptz, clock_timestamp()),
       expires_at = coalesce(:now::timestamptz, clock_timestamp()) + make_interval(secs => :ttl::float8)
 where w.id = any (:ids::uuid[]) and w.died_at is null
returning w.id::text
