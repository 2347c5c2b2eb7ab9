-- renew_workers: the supervisor keeps the leases of its living processes, in one statement.
-- Returns the ids renewed: a missing one was condemned, and what it runs is no longer its own.
-- Also tells whether jobs wait that must run alone (they were in two crashes).
with renewed as (
    update tenure.workers w
       set heartbeat_at = coalesce(:now::timestamptz, clock_timestamp()),
           expires_at = coalesce(:now::timestamptz, clock_timestamp()) + make_interval(secs => :ttl::float8)
     where w.id = any (:ids::uuid[]) and w.died_at is null
    returning w.id)
select coalesce((select array_agg(r.id::text) from renewed r), '{}'),
       exists (select from tenure.jobs j where j.state = 'pending' and j.crashes >= 2 and j.gate is null and j.queue = any (:queues::text[]))
           or exists (select from tenure.jobs j where j.state = 'pending' and j.crashes >= 2 and j.gate is not null and j.queue = any (:queues::text[]))
