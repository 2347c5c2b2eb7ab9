-- renew_workers: renews the leases of a supervisor's living worker processes, in one statement.
-- Returns the ids renewed: a missing worker was condemned, and has lost its claims.
-- Also returns whether jobs wait that must run alone (they were in two crashes), and the seconds until the first duty may become free,
-- so that candidates need not query it separately; and whether one of them is draining. With :counting, also how many living workers that
-- claim serve the same as each.
--   memory  JSON: megabytes by worker, without workers that were not measured
with renewed as (
    update tenure.workers w
       set heartbeat_at = coalesce(:now::timestamptz, clock_timestamp()),
           expires_at = coalesce(:now::timestamptz, clock_timestamp()) + make_interval(secs => :ttl::float8),
           memory_mb = coalesce((:memory::jsonb ->> w.id::text)::real, w.memory_mb)
     where w.id = any (:ids::uuid[]) and w.died_at is null
    returning w.id, w.queues, w.kinds, w.capabilities, w.draining_at)
select coalesce((select array_agg(r.id::text) from renewed r), '{}') as renewed,
       exists (select from tenure.jobs j
                where j.position > 0 and j.crashes >= 2 and j.limit_group is null and j.state = 'pending' and j.queue = any (:queues::text[]))
           or exists (select from tenure.jobs j
                       where j.position > 0 and j.crashes >= 2 and j.limit_group is not null and j.held_group is null
                         and j.queue = any (:queues::text[])) as suspects,
       (select extract(epoch from min(l.expires_at) - clock_timestamp())::float8
          from tenure.leases l
         -- A lease that no process took within a minute belongs to a duty of another version. Users' own leases are not duties.
         where l.expires_at > clock_timestamp() - interval '1 minute' and not starts_with(l.name, 'lease:')) as free_in,
       exists (select from renewed r where r.draining_at is not null) as draining,
       (select json_object_agg(r.id, c.alike)::text
          from renewed r
         cross join lateral (
            select greatest(1, count(*)) as alike
              from tenure.workers w
             where w.died_at is null and w.draining_at is null and w.queues = r.queues and w.kinds = r.kinds and w.capabilities = r.capabilities) c
         where :counting::boolean) as alike
