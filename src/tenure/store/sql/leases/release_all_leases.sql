-- release_all_leases: a holder that leaves lets others in at once, also to what it won without having been told.
-- Waits for statements of these duties that are under way, as release_leases does.
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
