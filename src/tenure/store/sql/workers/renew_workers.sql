-- renew_workers: the supervisor keeps the leases of its living processes, in one statement.
-- Returns the ids renewed: a missing one was condemned, and what it runs is no longer its own.
-- Also tells whether jobs wait that must run alone (they were in two crashes), and in how many seconds the first duty may
-- become free: so candidates need not ask for themselves.
with renewed as (
    update tenure.workers w
       set heartbeat_at = coalesce(:now::timestamptz, clock_timestamp()),
           expires_at = coalesce(:now::timestamptz, clock_timestamp()) + make_interval(secs => :ttl::float8)
     where w.id = any (:ids::uuid[]) and w.died_at is null
    returning w.id)
select coalesce((select array_agg(r.id::text) from renewed r), '{}'),
       exists (select from tenure.jobs j where j.state = 'pending' and j.crashes >= 2 and j.queue = any (:queues::text[])),
       (select extract(epoch from min(l.expires_at) - clock_timestamp())::float8 from tenure.leases l)
