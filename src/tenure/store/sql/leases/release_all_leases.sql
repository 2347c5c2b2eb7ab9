-- release_all_leases: releases all duties of a holder that shuts down, so that others can take them at once, including duties that it
-- acquired without receiving the reply.
-- Waits for running statements of these duties, as release_leases does.
-- Returns the duties released; the caller announces that they are free.
with ours as materialized (
    select l.name from tenure.leases l
     where l.holder = :holder::uuid and l.expires_at > clock_timestamp()
     order by l.name
       for update)
update tenure.leases l
   set expires_at = clock_timestamp()
  from ours o
 where l.name = o.name and l.holder = :holder::uuid and l.expires_at > clock_timestamp()
returning l.name
