-- release_all_leases: a holder that leaves lets others in at once, also to what it won without having been told.
-- Returns the duties released; the caller announces that they are free.
update tenure.leases l
   set expires_at = clock_timestamp()
 where l.holder = :holder::uuid and l.expires_at > clock_timestamp()
returning l.name
